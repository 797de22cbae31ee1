//! One launch, laid out for the process that runs it.
//!
//! Tensors that share memory with the caller share it here too: overlapping extents become one region of the arena.
//! Each region keeps its address modulo 32 bytes, the most that binding asks of one, so that a misaligned view is misaligned here,
//! and an aligned one is aligned no better; and it has room on both sides.

use super::error::{Failure, FailureKind};
use super::{Error, Mode, Program};
use crate::plan::{Binding, BoundTensor, EntryLaunch, Workspace};
use crate::view::{Access, MAX_RANK, ViewLayout};

/// Memory pages, and the canary on each side of a region, in bytes.
pub(super) const PAGE: u64 = 4096;
/// Room for strays on each side of a region: as much as the region itself, within these limits.
const ROOM: std::ops::RangeInclusive<u64> = 1 << 20..=1 << 28;
/// What binding asks of an address at most: that of a vector of four elements of 8 bytes.
const VECTOR: u64 = 32;
/// The first word of a job.
const PROTOCOL: u64 = 3;
/// What `cuMemAlloc` and its like align to (CUDA C++ Programming Guide, "Device Memory Accesses"), and no more than that.
const WORKSPACE_ALIGNMENT: u64 = 256;

/// Grids, parameters and memory of one launch.
#[derive(Clone, Copy, Debug)]
pub struct Launch<'a> {
    /// The grids, which run one after the other; none is a launch that does nothing.
    pub launches: &'a [EntryLaunch],
    /// The parameter struct; the addresses in it are replaced.
    pub params: &'a [u8],
    /// The tensors, and where their addresses stand in the struct.
    pub tensors: &'a [BoundTensor],
    /// Memory that is there while the launch runs, filled with NaN.
    pub workspace: Option<Workspace>,
}

impl<'a> From<&'a Binding> for Launch<'a> {
    fn from(binding: &'a Binding) -> Self {
        Launch {
            launches: binding.launches(),
            params: binding.params(),
            tensors: binding.tensors(),
            workspace: binding.workspace(),
        }
    }
}

/// The memory of one tensor: from the view's first element to the last byte that is available.
#[derive(Debug)]
pub enum Buffer<'a> {
    /// Of a tensor that the kernel reads.
    Read(&'a [u8]),
    /// Of a tensor that the kernel writes.
    Write(&'a mut [u8]),
    /// Of a tensor that the kernel reads in place: the memory of the tensor of that index, which is written.
    InPlace(usize),
}

/// The caller's memory of one tensor.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    pub(super) data: *mut u8,
    pub(super) bytes: usize,
    pub(super) writable: bool,
}

impl Extent {
    pub(super) fn address(&self) -> u64 {
        self.data as u64
    }

    fn end(&self) -> u64 {
        self.address().saturating_add(self.bytes as u64)
    }
}

fn failure(what: &str, found: String, required: String, because: &str, help: &str) -> Error {
    Error::from(Failure {
        kind: FailureKind::Launch,
        what: what.to_owned(),
        found,
        required,
        because: because.to_owned(),
        help: help.to_owned(),
    })
}

/// The buffers as extents, where each is the memory of its view.
pub(super) fn extents(launch: &Launch<'_>, buffers: &mut [Buffer<'_>]) -> Result<Vec<Extent>, Error> {
    let extents = resolve(buffers)?;
    if extents.len() != launch.tensors.len() {
        return Err(failure(
            "the number of buffers is wrong",
            format!("{} buffers", extents.len()),
            format!("{} buffers, one for each tensor", launch.tensors.len()),
            "each tensor of the launch is copied to the process that runs the kernel",
            "pass the memory of every view, in the order of the operands",
        ));
    }
    for (extent, tensor) in extents.iter().zip(launch.tensors) {
        check_extent(extent, tensor)?;
    }
    Ok(extents)
}

/// The memory behind each buffer; a tensor that is read in place has that of its output.
fn resolve(buffers: &mut [Buffer<'_>]) -> Result<Vec<Extent>, Error> {
    let own = |buffer: &mut Buffer<'_>| match buffer {
        Buffer::Read(b) => Ok(Extent { data: b.as_ptr().cast_mut(), bytes: b.len(), writable: false }),
        Buffer::Write(b) => Ok(Extent { data: b.as_mut_ptr(), bytes: b.len(), writable: true }),
        Buffer::InPlace(output) => Err(*output),
    };
    let found: Vec<Result<Extent, usize>> = buffers.iter_mut().map(own).collect();
    let of_output = |output: usize| match found.get(output) {
        Some(Ok(extent)) if extent.writable => Ok(Extent { writable: false, ..*extent }),
        other => Err(failure(
            "a tensor is read in place of none that is written",
            format!(
                "Buffer::InPlace({output}), {}",
                if other.is_some() { "which is no Buffer::Write" } else { "of none" }
            ),
            format!("the index of a Buffer::Write among {} buffers", found.len()),
            "in place means in the memory of an output",
            "pass Buffer::Read for a tensor with memory of its own",
        )),
    };
    found.iter().copied().map(|found| found.or_else(&of_output)).collect()
}

fn check_extent(extent: &Extent, tensor: &BoundTensor) -> Result<(), Error> {
    let BoundTensor { name, view, .. } = tensor;
    let bytes = view.available.0.checked_mul(view.dtype.bytes().0);
    if extent.address() != view.ptr || Some(extent.bytes as u64) != bytes {
        return Err(failure(
            &format!("the buffer of {name} is not the memory of its view"),
            format!("{} B at {:#x}", extent.bytes, extent.address()),
            format!("{} of {} at {:#x}", view.available, view.dtype, view.ptr),
            "alignment and overlap of the views are those that the kernel sees",
            "pass the slice that the view was made from, from its first element to the end of the available memory",
        ));
    }
    if extent.writable != (view.access == Access::Write) {
        let (found, required) = if extent.writable { ("Write", "Read") } else { ("Read", "Write") };
        return Err(failure(
            &format!("the buffer of {name} has the wrong access"),
            format!("Buffer::{found}"),
            format!("Buffer::{required}"),
            "what the kernel writes is copied back, and nothing else is",
            &format!("pass Buffer::{required} for {name}"),
        ));
    }
    Ok(())
}

/// Whose the memory of a region is. The numbers are those of `Owner` in state.h.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// The caller's, which the kernel only reads.
    Input = 0,
    /// The caller's, copied back afterwards.
    Output = 1,
    /// The executor's own, for the time of the launch.
    Workspace = 2,
}

/// Memory in one piece, and where it lies in the arena.
#[derive(Clone, Debug)]
pub(super) struct Region {
    /// The caller's address.
    pub(super) address: u64,
    pub(super) bytes: u64,
    /// From the start of the arena.
    pub(super) offset: u64,
    pub(super) owner: Owner,
    /// Indices of the tensors in it, by ascending address.
    pub(super) tensors: Vec<usize>,
}

/// Where everything lies in the arena of one run.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    /// The caller's memory by ascending address, then the workspace.
    pub(super) regions: Vec<Region>,
    pub(super) arena_bytes: u64,
}

impl Layout {
    pub(super) fn new(extents: &[Extent], workspace: Option<Workspace>) -> Result<Layout, Error> {
        let mut order: Vec<usize> = (0..extents.len()).collect();
        order.sort_by_key(|&i| (extents[i].address(), extents[i].bytes, i));
        let mut regions: Vec<Region> = Vec::new();
        for i in order {
            let e = &extents[i];
            match regions.last_mut() {
                Some(r) if e.address() < r.address.saturating_add(r.bytes) => {
                    r.bytes = r.bytes.max(e.end() - r.address);
                    r.owner = if e.writable { Owner::Output } else { r.owner };
                    r.tensors.push(i);
                }
                _ => regions.push(Region {
                    address: e.address(),
                    bytes: e.bytes as u64,
                    offset: 0,
                    owner: if e.writable { Owner::Output } else { Owner::Input },
                    tensors: vec![i],
                }),
            }
        }
        regions.extend(workspace.map(|workspace| Region {
            address: 0,
            bytes: workspace.bytes.0,
            offset: 0,
            owner: Owner::Workspace,
            tensors: Vec::new(),
        }));
        let arena_bytes = place(&mut regions).ok_or_else(|| {
            failure(
                "the tensors do not fit in an address space",
                format!("{} tensors", extents.len()),
                "memory of less than 2^63 bytes, with room around each tensor".into(),
                "the process that runs the kernel maps all of them",
                "run a smaller problem",
            )
        })?;
        Ok(Layout { regions, arena_bytes })
    }

    /// The caller's memory.
    pub(super) fn of_caller(&self) -> impl Iterator<Item = &Region> {
        self.regions.iter().filter(|r| r.owner != Owner::Workspace)
    }

    /// The workspace, if the region nearest to an offset in the arena is it.
    pub(super) fn workspace_at(&self, offset: u64) -> Option<&Region> {
        let distance =
            |r: &&Region| r.offset.saturating_sub(offset).max((offset + 1).saturating_sub(r.offset + r.bytes));
        self.regions.iter().min_by_key(distance).filter(|r| r.owner == Owner::Workspace)
    }

    /// The region and the offset in the arena of tensor `index`.
    pub(super) fn tensor(&self, index: usize, extents: &[Extent]) -> Option<(usize, u64)> {
        let region = self.regions.iter().position(|r| r.tensors.contains(&index))?;
        let r = &self.regions[region];
        Some((region, r.offset + (extents[index].address() - r.address)))
    }
}

/// Gives each region its offset; the result is the size of the arena.
fn place(regions: &mut [Region]) -> Option<u64> {
    let mut end = 0_u64;
    for r in regions {
        let room = r.bytes.clamp(*ROOM.start(), *ROOM.end());
        let past_page = if r.owner == Owner::Workspace { WORKSPACE_ALIGNMENT } else { VECTOR + r.address % VECTOR };
        r.offset = end.checked_add(room)?.checked_next_multiple_of(PAGE)?.checked_add(past_page)?;
        end = r.offset.checked_add(r.bytes)?.checked_add(room)?;
    }
    end.checked_add(2 * PAGE)?.checked_next_multiple_of(PAGE).filter(|&bytes| bytes <= i64::MAX as u64)
}

/// The job's header, up to the bytes of the regions.
pub(super) fn encode(program: &Program, launch: &Launch<'_>, layout: &Layout, extents: &[Extent]) -> Vec<u8> {
    let workspace = layout.regions.iter().position(|r| r.owner == Owner::Workspace).zip(launch.workspace);
    let mut words: Vec<u64> = vec![PROTOCOL, layout.arena_bytes, workers(program)];
    words.push(u64::try_from(program.options.time_limit.as_millis()).unwrap_or(u64::MAX / 2).min(u64::MAX / 2));
    let tensors = extents.len() + usize::from(workspace.is_some());
    words.extend([launch.launches.len(), launch.params.len(), layout.regions.len(), tensors].map(|n| n as u64));
    words.push(program.shared.len() as u64);
    for EntryLaunch { entry, grid, block, dynamic_smem } in launch.launches {
        words.push(*entry as u64);
        words.extend(grid.iter().chain(block).chain([dynamic_smem]).map(|n| u64::from(*n)));
    }
    let mut job: Vec<u8> = words.iter().flat_map(|w| w.to_ne_bytes()).collect();
    job.extend_from_slice(launch.params);
    let mut words: Vec<u64> = Vec::new();
    for r in &layout.regions {
        words.extend([r.offset, r.bytes, r.owner as u64]);
    }
    for (i, tensor) in launch.tensors.iter().enumerate() {
        let Some((region, offset)) = layout.tensor(i, extents) else {
            unreachable!("every extent was given a region");
        };
        let view = &tensor.view;
        // Without elements: one mode of none.
        let empty = ViewLayout::strided(&[0], &[1]).filter(|_| view.span() == Some(0));
        let (layout, modes) = empty.map_or_else(|| (view.layout, view.layout.by_stride()), |empty| (empty, vec![0]));
        words.extend([offset, modes.len() as u64]);
        for of in [layout.shape(), layout.stride()] {
            words.extend((0..MAX_RANK).map(|k| modes.get(k).map_or(0, |i| of[*i] as u64)));
        }
        words.extend([
            view.dtype.bytes().0,
            u64::from(view.access == Access::Write),
            region as u64,
            tensor.param_offset as u64,
        ]);
    }
    if let Some((region, Workspace { bytes, param_offset })) = workspace {
        // As one run of bytes.
        let run = |of: u64| core::iter::once(of).chain([0; MAX_RANK - 1]);
        words.extend([layout.regions[region].offset, 1]);
        words.extend(run(bytes.0).chain(run(1)));
        words.extend([1, 1, region as u64, param_offset as u64]);
    }
    for variable in &program.shared {
        words.extend([variable.offset, variable.size]);
    }
    job.extend(words.iter().flat_map(|w| w.to_ne_bytes()));
    job
}

/// Checked modes see all blocks in one process.
fn workers(program: &Program) -> u64 {
    if program.mode == Mode::Plain { program.options.workers.get() as u64 } else { 1 }
}

/// Whether the launch is one that a GPU could be given.
pub(super) fn check(program: &Program, launch: &Launch<'_>) -> Result<(), Error> {
    for EntryLaunch { entry, grid, block, .. } in launch.launches {
        let threads = block.iter().try_fold(1_u32, |n, &b| n.checked_mul(b)).filter(|n| (1..=1024).contains(n));
        let blocks = grid.iter().try_fold(1_u32, |n, &g| n.checked_mul(g)).filter(|n| (1..=1 << 31).contains(n));
        if threads.is_none() || blocks.is_none() {
            return Err(failure(
                "the grid or the block cannot be run",
                format!("grid {grid:?}, block {block:?}"),
                "1 to 1024 threads in a block, 1 to 2^31 blocks".into(),
                "a block of more threads does not exist (CUDA C++ Programming Guide, \"Compute Capabilities\"), and more \
                 blocks would not end in a lifetime here",
                "choose a smaller tile or problem",
            ));
        }
        if *entry >= program.entries.len() {
            return Err(failure(
                "the kernel has no such entry",
                format!("entry {entry}, counted from 0"),
                format!("one of {}: {}", program.entries.len(), program.entries.join(", ")),
                "an entry is called by its place in the source",
                "launch with what Plan::bind returned",
            ));
        }
    }
    check_memory(launch)
}

fn check_memory(launch: &Launch<'_>) -> Result<(), Error> {
    let pointer = |offset: usize| offset.checked_add(8).is_some_and(|end| end <= launch.params.len());
    if let Some(Workspace { bytes, param_offset }) = launch.workspace.filter(|w| !pointer(w.param_offset)) {
        return Err(failure(
            "the workspace does not fit the launch",
            format!("{bytes}, its address at byte {param_offset} of {}", launch.params.len()),
            "eight bytes for its address in the parameter struct".into(),
            "the kernel finds its workspace by that address",
            "launch with what Plan::bind returned",
        ));
    }
    for tensor in launch.tensors {
        let BoundTensor { name, view, param_offset } = tensor;
        let fits = view.span().is_some_and(|span| span <= view.available.0)
            && (view.span() == Some(0) || view.layout.distinct().is_injective());
        if !fits || !pointer(*param_offset) {
            return Err(failure(
                &format!("{name} does not fit the launch"),
                format!("{view} in {}, its address at byte {param_offset} of {}", view.available, launch.params.len()),
                "a view inside its memory, and eight bytes for its address in the parameter struct".into(),
                "the executor checks every access against the elements of the view",
                "launch with what Plan::bind returned",
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(address: usize, bytes: usize, writable: bool) -> Extent {
        Extent { data: std::ptr::without_provenance_mut(address), bytes, writable }
    }

    #[test]
    fn overlapping_extents_share_a_region_and_touching_ones_do_not() {
        let extents = [extent(0x5010, 64, true), extent(0x5000, 32, false), extent(0x5050, 16, false)];
        let layout = Layout::new(&extents, None).expect("fits");
        let shape: Vec<_> = layout.regions.iter().map(|r| (r.address, r.bytes, r.owner, r.tensors.clone())).collect();
        assert_eq!(shape, [(0x5000, 80, Owner::Output, vec![1, 0]), (0x5050, 16, Owner::Input, vec![2])]);
        let first = layout.regions[0].offset;
        assert_eq!(layout.tensor(0, &extents), Some((0, first + 16)));
    }

    #[test]
    fn a_region_keeps_its_alignment_and_no_better_one_and_has_room_on_both_sides() {
        let extents = [extent(0x1002, 5 << 20, false), extent(0x9000_0100, 4, true)];
        let layout = Layout::new(&extents, None).expect("fits");
        let [a, b] = &layout.regions[..] else { panic!("two regions") };
        assert_eq!((a.offset % 64, b.offset % 64), (32 + 2, 32));
        assert!(a.offset >= 5 << 20 && b.offset - (a.offset + a.bytes) >= (5 << 20) + (1 << 20));
        assert!(layout.arena_bytes - (b.offset + b.bytes) >= 1 << 20);
    }
}
