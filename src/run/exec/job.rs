//! One job: the grids of a launch with their parameters, and the caller's memory that they work on.

use super::error::{Error, Refused};
use super::extent::Extent;
use crate::plan::{Binding, BoundMap, BoundTensor, EntryLaunch, Workspace};

/// The largest alignment that binding requires: of a vector of four elements of 8 bytes.
pub(super) const VECTOR: u64 = 32;

/// Grids, parameters and memory of one launch.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// The grids, which run one after the other; none is a launch that does nothing.
    pub launches: &'a [EntryLaunch],
    /// The parameter struct; the addresses in it are replaced.
    pub params: &'a [u8],
    /// The tensors, and where their addresses stand in the struct.
    pub tensors: &'a [BoundTensor],
    /// Memory that is there while the launch runs, filled with NaN.
    pub workspace: Option<Workspace>,
    /// The contents of the tensor maps among the parameters.
    pub tensor_maps: &'a [BoundMap],
}

impl<'a> From<&'a Binding> for Job<'a> {
    fn from(binding: &'a Binding) -> Self {
        Job {
            launches: binding.launches(),
            params: binding.params(),
            tensors: binding.tensors(),
            workspace: binding.workspace(),
            tensor_maps: binding.tensor_maps(),
        }
    }
}

/// The memory of one tensor: from the view's first element to the last byte that is available.
#[derive(Debug)]
pub enum Buffer<'a> {
    /// A tensor that the kernel reads.
    Read(&'a [u8]),
    /// A tensor that the kernel writes.
    Write(&'a mut [u8]),
    /// A tensor that the kernel reads in place: it shares the memory of the written tensor with this index.
    InPlace(usize),
}

/// A job that cannot be run.
pub(super) fn refused(what: &str, found: String, required: String, because: &str, help: &str) -> Error {
    Error::Job(Box::new(Refused {
        what: what.to_owned(),
        found,
        required,
        because: because.to_owned(),
        help: help.to_owned(),
    }))
}

/// The buffers as extents, where each is the memory of its view.
pub(super) fn extents(job: &Job<'_>, buffers: &mut [Buffer<'_>]) -> Result<Vec<Extent>, Error> {
    let extents = resolve(buffers)?;
    if extents.len() != job.tensors.len() {
        return Err(refused(
            "the number of buffers is wrong",
            format!("{} buffers", extents.len()),
            format!("{} buffers, one for each tensor", job.tensors.len()),
            "each tensor of the job is copied to where the kernel runs",
            "pass the memory of every view, in the order of the operands",
        ));
    }
    for (extent, tensor) in extents.iter().zip(job.tensors) {
        check_extent(extent, tensor)?;
    }
    Ok(extents.iter().zip(job.tensors).map(|(extent, tensor)| extent.of_access(tensor.view.access)).collect())
}

/// The memory behind each buffer; an in-place tensor has its output's.
fn resolve(buffers: &mut [Buffer<'_>]) -> Result<Vec<Extent>, Error> {
    let own = |buffer: &mut Buffer<'_>| match buffer {
        Buffer::Read(b) => Ok(Extent::whole(b.as_ptr().cast_mut(), b.len(), false)),
        Buffer::Write(b) => Ok(Extent::whole(b.as_mut_ptr(), b.len(), true)),
        Buffer::InPlace(output) => Err(*output),
    };
    let found: Vec<Result<Extent, usize>> = buffers.iter_mut().map(own).collect();
    let of_output = |output: usize| match found.get(output) {
        Some(Ok(extent)) if extent.writable => Ok(extent.to_read()),
        other => Err(refused(
            "a tensor is read in place of a tensor that is not written",
            format!(
                "Buffer::InPlace({output}), {}",
                if other.is_some() { "which is not a Buffer::Write" } else { "which does not exist" }
            ),
            format!("the index of a Buffer::Write among {} buffers", found.len()),
            "an in-place input shares the memory of an output",
            "pass Buffer::Read for a tensor with memory of its own",
        )),
    };
    found.iter().copied().map(|found| found.or_else(&of_output)).collect()
}

fn check_extent(extent: &Extent, tensor: &BoundTensor) -> Result<(), Error> {
    let BoundTensor { name, view, .. } = tensor;
    let bytes = view.available.0.checked_mul(view.dtype.bytes().0);
    if extent.address() != view.ptr || Some(extent.bytes as u64) != bytes {
        return Err(refused(
            &format!("the buffer of {name} is not the memory of its view"),
            format!("{} B at {:#x}", extent.bytes, extent.address()),
            format!("{} of {} at {:#x}", view.available, view.dtype, view.ptr),
            "alignment and overlap of the views are those that the kernel sees",
            "pass the slice that the view was made from, from its first element to the end of the available memory",
        ));
    }
    if extent.writable != view.access.writes() {
        let (found, required) = if extent.writable { ("Write", "Read") } else { ("Read", "Write") };
        return Err(refused(
            &format!("the buffer of {name} has the wrong access"),
            format!("Buffer::{found}"),
            format!("Buffer::{required}"),
            "what the kernel writes is copied back, and nothing else is",
            &format!("pass Buffer::{required} for {name}"),
        ));
    }
    Ok(())
}

/// Whether the launch is one that a GPU could be given.
pub(super) fn check(entries: &[String], job: &Job<'_>) -> Result<(), Error> {
    for EntryLaunch { entry, grid, block, .. } in job.launches {
        let threads = block.iter().try_fold(1_u32, |n, &b| n.checked_mul(b)).filter(|n| (1..=1024).contains(n));
        let blocks = grid.iter().try_fold(1_u32, |n, &g| n.checked_mul(g)).filter(|n| (1..=1 << 31).contains(n));
        if threads.is_none() || blocks.is_none() {
            return Err(refused(
                "the grid or the block cannot be run",
                format!("grid {grid:?}, block {block:?}"),
                "1 to 1024 threads in a block, 1 to 2^31 blocks".into(),
                "a block of more threads does not exist (CUDA C++ Programming Guide, \"Compute Capabilities\"), and more \
                 blocks would not end in a lifetime here",
                "choose a smaller tile or problem",
            ));
        }
        if *entry >= entries.len() {
            return Err(refused(
                "the kernel has no such entry",
                format!("entry {entry}, counted from 0"),
                format!("one of {}: {}", entries.len(), entries.join(", ")),
                "an entry is called by its place in the source",
                "launch with what Plan::bind returned",
            ));
        }
    }
    check_memory(job)
}

fn check_memory(job: &Job<'_>) -> Result<(), Error> {
    let pointer = |offset: usize| offset.checked_add(8).is_some_and(|end| end <= job.params.len());
    if let Some(Workspace { bytes, param_offset }) = job.workspace.filter(|w| !pointer(w.param_offset)) {
        return Err(refused(
            "the workspace does not fit the launch",
            format!("{bytes}, its address at byte {param_offset} of {}", job.params.len()),
            "eight bytes for its address in the parameter struct".into(),
            "the kernel finds its workspace by that address",
            "launch with what Plan::bind returned",
        ));
    }
    for tensor in job.tensors {
        let BoundTensor { name, view, param_offset } = tensor;
        let fits = view.span().is_some_and(|span| span <= view.available.0)
            && (view.span() == Some(0) || view.layout.distinct().is_injective());
        if !fits || !pointer(*param_offset) {
            return Err(refused(
                &format!("{name} does not fit the launch"),
                format!("{view} in {}, its address at byte {param_offset} of {}", view.available, job.params.len()),
                "a view inside its memory, and eight bytes for its address in the parameter struct".into(),
                "the executor checks every access against the elements of the view",
                "launch with what Plan::bind returned",
            ));
        }
    }
    Ok(())
}
