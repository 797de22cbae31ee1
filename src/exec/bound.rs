//! A launch of a recipe's kernel, as [`Plan::bind`](crate::plan::Plan::bind) decided it, on the PTX executor.

use super::ptx::{Buffer, Data, Error, Launch, Module};
use crate::plan::{Binding, BoundTensor, EntryLaunch};

/// The memory of one tensor: from the view's first element to the last byte that is available.
#[derive(Debug)]
pub enum TensorMemory<'a> {
    /// Of a tensor that the kernel reads.
    Read(&'a [u8]),
    /// Of a tensor that the kernel writes.
    Write(&'a mut [u8]),
    /// Of a tensor that the kernel reads in place: the memory of the tensor of that index, which is written.
    InPlace(usize),
}

/// Where addresses are kept: as views have them, modulo this.
const MODULO: u64 = 256;

/// Bytes that belong to elements, one bit each; `None` where there are too many to list.
fn elements(tensor: &BoundTensor, bytes: u64) -> Option<Vec<u64>> {
    let layout = tensor.view.layout;
    let size = tensor.view.dtype.bytes().0;
    let count = layout.size().filter(|n| *n <= 1 << 26)?;
    let offset = tensor.view.ptr % MODULO;
    let mut bits = vec![0_u64; ((offset + bytes) / 64 + 1) as usize];
    let mut coordinate = vec![0_i64; layout.rank()];
    for _ in 0..count {
        let at: i64 = coordinate.iter().zip(layout.stride()).map(|(c, d)| c * d).sum();
        for byte in at as u64 * size..(at as u64 + 1) * size {
            *bits.get_mut((byte / 64) as usize)? |= 1 << (byte % 64);
        }
        for (c, n) in coordinate.iter_mut().zip(layout.shape()) {
            *c += 1;
            if *c < *n {
                break;
            }
            *c = 0;
        }
    }
    Some(bits)
}

/// The launch of one grid of a binding; `entry` is the name of its entry. Tensors lie at their own addresses, modulo 256
/// bytes, so that a misaligned view is misaligned here. An output counts as unwritten unless an input lies in its place, or an
/// earlier grid has run.
///
/// # Errors
/// The module has no such entry, or it uses what the executor does not run.
pub fn bind<'a>(
    module: &'a Module,
    entry: &str,
    grid: &EntryLaunch,
    binding: &Binding,
    memory: Vec<TensorMemory<'a>>,
    workspace: Option<&'a mut [u8]>,
    is_first: bool,
) -> Result<Launch<'a>, Error> {
    let mut launch = module.launch(entry)?.grid(&grid.grid).block(&grid.block).dynamic_smem(grid.dynamic_smem);
    launch = launch.params(binding.params());
    let in_place: Vec<usize> =
        memory.iter().filter_map(|m| if let TensorMemory::InPlace(i) = m { Some(*i) } else { None }).collect();
    let mut index_of = Vec::new();
    let mut next = 0;
    for (i, (tensor, memory)) in binding.tensors().iter().zip(memory).enumerate() {
        let data = match memory {
            TensorMemory::Read(bytes) => Data::Read(bytes),
            TensorMemory::Write(bytes) => Data::Write(bytes),
            TensorMemory::InPlace(output) => {
                index_of.push(Err(output));
                continue;
            }
        };
        let bytes = match &data {
            Data::Read(b) => b.len() as u64,
            Data::Write(b) => b.len() as u64,
            Data::Scratch(n) => *n,
        };
        let mut buffer = Buffer::new(tensor.name, data);
        buffer.align = MODULO;
        buffer.offset = tensor.view.ptr % MODULO;
        buffer.written = matches!(buffer.data, Data::Read(_)) || in_place.contains(&i) || !is_first;
        buffer.elements = elements(tensor, bytes);
        launch = launch.buffer(buffer);
        index_of.push(Ok(next));
        next += 1;
    }
    for (tensor, index) in binding.tensors().iter().zip(&index_of) {
        let found = match index {
            Ok(index) => Some(*index),
            Err(output) => index_of.get(*output).and_then(|i| i.ok()),
        };
        if let Some(index) = found {
            launch = launch.pointer(tensor.param_offset, index, 0);
        }
    }
    if let (Some(room), Some(bytes)) = (binding.workspace(), workspace) {
        let mut buffer = Buffer::new("workspace", Data::Write(bytes));
        buffer.align = MODULO;
        buffer.written = !is_first;
        launch = launch.buffer(buffer).pointer(room.param_offset, next, 0);
    }
    Ok(launch)
}
