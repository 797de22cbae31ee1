//! The memory that an access hits, in the caller's terms.

use core::fmt;

/// The memory that an access hits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// A tensor, or memory around it. The coordinate follows from the address; it is outside the shape if the access is.
    Tensor {
        /// Its name.
        name: String,
        /// One number for each mode. In the mode of the largest stride it may be negative or past the end; in another mode it may lie
        /// in the gap of a padded row.
        coordinate: Vec<i64>,
        /// Its extents.
        shape: Vec<u64>,
        /// Its strides, in elements.
        stride: Vec<i64>,
    },
    /// A variable in shared memory.
    Shared {
        /// Its name in the text. If the access hits no variable, the nearest one before it.
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
    /// A buffer, a variable or the parameters, or memory around them.
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
        /// Its name in the PTX. If the access hits no variable, the nearest one.
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
