//! What an access hit, in the caller's terms.

use core::fmt;

use crate::plan::BoundTensor;
use crate::view::ViewLayout;

/// What an access hit.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// A tensor, or its surroundings. The coordinate is that of the address: outside the shape where the access is.
    Tensor {
        /// The operand's name.
        name: &'static str,
        /// One number for each mode: that of the largest stride may be negative or past the last, another may lie in the
        /// gap of a padded row.
        coordinate: Vec<i64>,
        /// Shape and strides of the view.
        layout: ViewLayout,
    },
    /// A variable in shared memory.
    Shared {
        /// Its name in the text; the nearest variable before the access, where it hits none.
        name: String,
        /// Bytes from its start.
        offset: i64,
        /// Its size in bytes.
        size: u64,
    },
    /// The launch's workspace, or its surroundings.
    Workspace {
        /// Bytes from its start.
        offset: i64,
        /// Its size in bytes.
        size: u64,
    },
    /// Dynamic shared memory.
    DynamicShared {
        /// Bytes from its start.
        offset: i64,
        /// The launch's dynamic shared memory, in bytes.
        size: u64,
    },
    /// Another allocation, or its surroundings.
    Buffer {
        /// Its name.
        name: String,
        /// Bytes from its start.
        offset: i64,
        /// Its size in bytes.
        size: u64,
    },
    /// A thread's local memory.
    Local {
        /// Its address there.
        address: u64,
        /// What the thread has, in bytes.
        size: u64,
    },
    /// Some other address.
    Address(u64),
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Tensor { name, coordinate, layout } => {
                let coordinate: Vec<String> = coordinate.iter().map(ToString::to_string).collect();
                write!(f, "{name}({}) of {name} = {layout}", coordinate.join(","))
            }
            Target::Shared { name, offset, size } => write!(f, "byte {offset} of shared {name}[{size} B]"),
            Target::Workspace { offset, size } => write!(f, "byte {offset} of the workspace[{size} B]"),
            Target::DynamicShared { offset, size } => write!(f, "byte {offset} of dynamic shared memory[{size} B]"),
            Target::Buffer { name, offset, size } => write!(f, "byte {offset} of {name}[{size} B]"),
            Target::Local { address, size } => write!(f, "local address {address:#x}; the thread has {size} B"),
            Target::Address(address) => write!(f, "address {address:#x}"),
        }
    }
}

/// The tensor that an address belongs to: one that has it as an element, else the nearest. `starts` has the address of each.
pub(super) fn tensor(
    tensors: &[BoundTensor],
    address: u64,
    starts: impl Iterator<Item = (usize, u64)>,
) -> Option<Target> {
    let target = |(i, start): (usize, u64)| {
        let view = &tensors[i].view;
        let bytes = i64::try_from(address).ok()? - i64::try_from(start).ok()?;
        let (distance, coordinate) = locate(&view.layout, bytes.div_euclid(view.dtype.bytes().0 as i64));
        Some((distance, i, coordinate))
    };
    let (_, i, coordinate) = starts.filter_map(target).min()?;
    let BoundTensor { name, view, .. } = &tensors[i];
    Some(Target::Tensor { name, coordinate, layout: view.layout })
}

/// The coordinate of the element at an offset, and how far outside the shape it lies along each mode, the largest stride
/// first: all zeros for an element of the tensor.
fn locate(layout: &ViewLayout, offset: i64) -> (Vec<i64>, Vec<i64>) {
    let mut coordinate = vec![0; layout.rank()];
    let mut distance = Vec::new();
    let mut rest = offset;
    // Modes of one element too: past the end of a single row lies the next row.
    let mut modes: Vec<usize> = (0..layout.rank()).filter(|i| layout.stride()[*i] > 0).collect();
    modes.sort_by_key(|i| (core::cmp::Reverse(layout.stride()[*i]), *i));
    for i in modes {
        let (extent, stride) = (layout.shape()[i], layout.stride()[i]);
        let c = rest.div_euclid(stride);
        rest -= c * stride;
        coordinate[i] = c;
        distance.push((c - (extent - 1)).max(-c).max(0));
    }
    // Where every mode is left out, there is one element; with a larger least stride, what lies between.
    distance.push(rest.abs());
    (distance, coordinate)
}
