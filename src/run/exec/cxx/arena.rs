//! Where the memory of one job lies in the process that runs it, and the job as that process reads it.
//!
//! Each region keeps its address modulo 32 bytes, the most that binding asks of one, so that a misaligned view is misaligned here,
//! and an aligned one is aligned no better; and it has room on both sides.

use super::{Mode, Program};
use crate::exec::Error;
use crate::exec::extent::{self, Extent};
use crate::exec::job::{Job, VECTOR, refused};
use crate::plan::{EntryLaunch, Workspace};
use crate::view::{Access, MAX_RANK, ViewLayout};

/// Memory pages, and the canary on each side of a region, in bytes.
pub(super) const PAGE: u64 = 4096;
/// Room for strays on each side of a region: as much as the region itself, within these limits.
const ROOM: std::ops::RangeInclusive<u64> = 1 << 20..=1 << 28;
/// The first word of a job.
const PROTOCOL: u64 = 3;
/// What `cuMemAlloc` and its like align to (CUDA C++ Programming Guide, "Device Memory Accesses"), and no more than that.
const WORKSPACE_ALIGNMENT: u64 = 256;

/// Whose the memory of a region is. The numbers are those of `Owner` in state.h.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// The caller's, which the kernel only reads.
    Input = 0,
    /// The caller's, copied back afterwards.
    Output = 1,
    /// The executor's own, for the time of the job.
    Workspace = 2,
}

/// Memory in one piece, and where it lies in the arena.
#[derive(Clone, Debug)]
pub(super) struct Region {
    pub(super) own: extent::Region,
    /// From the start of the arena.
    pub(super) offset: u64,
    pub(super) owner: Owner,
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
        let of_caller = extent::regions(extents).into_iter().map(|own| Region {
            offset: 0,
            owner: if own.is_output { Owner::Output } else { Owner::Input },
            own,
        });
        let mut regions: Vec<Region> = of_caller.collect();
        regions.extend(workspace.map(|workspace| Region {
            own: extent::Region {
                address: 0,
                bytes: workspace.bytes.0,
                is_output: false,
                is_input: false,
                tensors: Vec::new(),
            },
            offset: 0,
            owner: Owner::Workspace,
        }));
        let arena_bytes = place(&mut regions).ok_or_else(|| {
            refused(
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
            |r: &&Region| r.offset.saturating_sub(offset).max((offset + 1).saturating_sub(r.offset + r.own.bytes));
        self.regions.iter().min_by_key(distance).filter(|r| r.owner == Owner::Workspace)
    }

    /// The region and the offset in the arena of tensor `index`.
    pub(super) fn tensor(&self, index: usize, extents: &[Extent]) -> Option<(usize, u64)> {
        let region = self.regions.iter().position(|r| r.own.tensors.contains(&index))?;
        let r = &self.regions[region];
        Some((region, r.offset + (extents[index].address() - r.own.address)))
    }
}

/// Gives each region its offset; the result is the size of the arena.
fn place(regions: &mut [Region]) -> Option<u64> {
    let mut end = 0_u64;
    for r in regions {
        let room = r.own.bytes.clamp(*ROOM.start(), *ROOM.end());
        let past_page = if r.owner == Owner::Workspace { WORKSPACE_ALIGNMENT } else { VECTOR + r.own.address % VECTOR };
        r.offset = end.checked_add(room)?.checked_next_multiple_of(PAGE)?.checked_add(past_page)?;
        end = r.offset.checked_add(r.own.bytes)?.checked_add(room)?;
    }
    end.checked_add(2 * PAGE)?.checked_next_multiple_of(PAGE).filter(|&bytes| bytes <= i64::MAX as u64)
}

/// The job's header, up to the bytes of the regions.
pub(super) fn encode(program: &Program, job: &Job<'_>, layout: &Layout, extents: &[Extent]) -> Vec<u8> {
    let workspace = layout.regions.iter().position(|r| r.owner == Owner::Workspace).zip(job.workspace);
    let mut words: Vec<u64> = vec![PROTOCOL, layout.arena_bytes, workers(program)];
    words.push(u64::try_from(program.options.time_limit.as_millis()).unwrap_or(u64::MAX / 2).min(u64::MAX / 2));
    let tensors = extents.len() + usize::from(workspace.is_some());
    words.extend([job.launches.len(), job.params.len(), layout.regions.len(), tensors].map(|n| n as u64));
    words.push(program.shared.len() as u64);
    for EntryLaunch { entry, grid, block, dynamic_smem, .. } in job.launches {
        words.push(*entry as u64);
        words.extend(grid.iter().chain(block).chain([dynamic_smem]).map(|n| u64::from(*n)));
    }
    let mut header: Vec<u8> = words.iter().flat_map(|w| w.to_ne_bytes()).collect();
    header.extend_from_slice(job.params);
    let mut words: Vec<u64> = Vec::new();
    for r in &layout.regions {
        words.extend([r.offset, r.own.bytes, r.owner as u64]);
    }
    for (i, tensor) in job.tensors.iter().enumerate() {
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
    header.extend(words.iter().flat_map(|w| w.to_ne_bytes()));
    header
}

/// Checked modes see all blocks in one process.
fn workers(program: &Program) -> u64 {
    if program.mode == Mode::Plain { program.options.workers.get() as u64 } else { 1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::extent::tests::extent;

    #[test]
    fn a_tensor_has_its_place_in_a_shared_region() {
        let extents = [extent(0x5010, 64, true), extent(0x5000, 32, false)];
        let layout = Layout::new(&extents, None).expect("fits");
        let first = layout.regions[0].offset;
        assert_eq!(layout.tensor(0, &extents), Some((0, first + 16)));
        assert_eq!(layout.regions[0].owner, Owner::Output);
    }

    #[test]
    fn a_region_keeps_its_alignment_and_no_better_one_and_has_room_on_both_sides() {
        let extents = [extent(0x1002, 5 << 20, false), extent(0x9000_0100, 4, true)];
        let layout = Layout::new(&extents, None).expect("fits");
        let [a, b] = &layout.regions[..] else { panic!("two regions") };
        assert_eq!((a.offset % 64, b.offset % 64), (32 + 2, 32));
        assert!(a.offset >= 5 << 20 && b.offset - (a.offset + a.own.bytes) >= (5 << 20) + (1 << 20));
        assert!(layout.arena_bytes - (b.offset + b.own.bytes) >= 1 << 20);
    }
}
