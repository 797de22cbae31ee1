//! What an access hit, in the caller's terms.

use core::fmt;

/// What an access hit.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// A tensor, or its surroundings. The coordinate is that of the address: outside the shape where the access is.
    Tensor {
        /// Its name.
        name: String,
        /// One number for each mode: that of the largest stride may be negative or past the last, another may lie in the
        /// gap of a padded row.
        coordinate: Vec<i64>,
        /// Its extents.
        shape: Vec<u64>,
        /// Its strides, in elements.
        stride: Vec<i64>,
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
    /// Dynamic shared memory.
    DynamicShared {
        /// Bytes from its start.
        offset: i64,
        /// The launch's dynamic shared memory, in bytes.
        size: u64,
    },
    /// A buffer, a variable or the parameters, or their surroundings.
    Buffer {
        /// Its name.
        name: String,
        /// Bytes from its start.
        offset: i64,
        /// Its size in bytes.
        size: u64,
    },
    /// A variable in a thread's local memory.
    Local {
        /// Its name in the PTX; the nearest variable, where the access hits none.
        name: String,
        /// Bytes from its start.
        offset: i64,
        /// Its size in bytes.
        size: u64,
    },
    /// Some other address.
    Address(u64),
}

/// `(a,b)`, as CuTe writes a tuple.
fn tuple(numbers: impl Iterator<Item = impl ToString>) -> String {
    format!("({})", numbers.map(|n| n.to_string()).collect::<Vec<_>>().join(","))
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Tensor { name, coordinate, shape, stride } => {
                write!(f, "{name}{} of {name} = {}", tuple(coordinate.iter()), tuple(shape.iter()))?;
                write!(f, ":{}", tuple(stride.iter()))
            }
            Target::Shared { name, offset, size } => write!(f, "byte {offset} of shared {name}[{size} B]"),
            Target::DynamicShared { offset, size } => write!(f, "byte {offset} of dynamic shared memory[{size} B]"),
            Target::Buffer { name, offset, size } => write!(f, "byte {offset} of {name}[{size} B]"),
            Target::Local { name, offset, size } => write!(f, "byte {offset} of local {name}[{size} B]"),
            Target::Address(address) => write!(f, "address {address:#x}"),
        }
    }
}
