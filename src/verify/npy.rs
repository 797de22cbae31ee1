//! NumPy's `.npy` files (NumPy, "NEP 1" and `numpy.lib.format`): versions 1.0 to 3.0, both byte orders, C and Fortran
//! order.
//!
//! An array of shape `()` is a 1x1 matrix, `(n,)` a row 1xN, `(m, n)` a matrix; more axes are refused. bfloat16, which
//! NumPy does not know, is read from `<V2` (what `ml_dtypes` saves) and from the bits in a `<u2`, and written as `<u2`.
//! What is written is byte for byte what `numpy.save` writes for the same array.
//!
//! A file is read only if its length is what its header promises, so that no header can ask for more memory than the file
//! has; a file is written beside its place and renamed, so that no reader ever sees half of it.
//!
//! ```
//! use cutemplate::dtype::DType;
//! use cutemplate::verify::{Fill, Tensor, TensorLayout, npy};
//!
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("a.npy");
//! let mut a = Tensor::new(DType::F32, TensorLayout::padded(3, 12, 16))?;
//! a.fill(Fill::Normal, 1);
//! npy::write(&path, &a)?;
//! let b = npy::read(&path, DType::F32)?;
//! assert_eq!(b.layout(), TensorLayout::contiguous(3, 12));
//! assert_eq!(b.bits(2, 11), a.bits(2, 11));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod header;

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use header::{Header, HeaderError};

use crate::dtype::DType;
use crate::verify::scalar::with_scalar;
use crate::verify::tensor::{Tensor, TensorError, TensorLayout};

/// What is wrong with a file, and which.
#[derive(Debug, thiserror::Error)]
#[error("{}: {kind}", path.display())]
pub struct NpyError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    #[source]
    pub kind: NpyErrorKind,
}

/// What is wrong with a file.
#[derive(Debug, thiserror::Error)]
pub enum NpyErrorKind {
    /// The operating system says no.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// It is no `.npy` file, or damaged.
    #[error("not a readable .npy file: {0}")]
    Header(#[from] HeaderError),
    /// Another element type.
    #[error(
        "found elements of type {found:?}, required {required} ({})\n  help: convert with numpy: {}",
        required.npy_descriptors().join(", "), convert_help(*required)
    )]
    Type {
        /// The descriptor of the file.
        found: String,
        /// What the caller reads.
        required: DType,
    },
    /// The shape is no matrix.
    #[error("found shape {found}, required at most two axes, none of them empty\n  help: a.reshape(m, n) in numpy")]
    Shape {
        /// The shape of the file, as Python writes it.
        found: String,
    },
    /// The length of the file contradicts its header.
    #[error(
        "found {found} bytes of elements, required {} for shape {shape} of {dtype}: the file is {}",
        required.map_or("more than 2^64".to_owned(), |r| r.to_string()),
        if required.is_some_and(|r| r < *found) { "longer than its header says" } else { "truncated, or its header is wrong" }
    )]
    Length {
        /// Bytes after the header.
        found: u64,
        /// Bytes that the header promises; `None` where that is beyond 64 bits.
        required: Option<u64>,
        /// The shape of the file, as Python writes it.
        shape: String,
        /// The element type.
        dtype: DType,
    },
    /// It cannot be held in memory.
    #[error(transparent)]
    Tensor(#[from] Box<TensorError>),
}

fn convert_help(dtype: DType) -> &'static str {
    match dtype {
        DType::F64 => "a.astype(numpy.float64)",
        DType::F32 => "a.astype(numpy.float32)",
        DType::F16 => "a.astype(numpy.float16)",
        DType::Bf16 => "a.astype(ml_dtypes.bfloat16), or its bits as numpy.uint16",
        DType::E4m3 => "a.astype(ml_dtypes.float8_e4m3fn), or its bits as numpy.uint8",
        DType::E5m2 => "a.astype(ml_dtypes.float8_e5m2), or its bits as numpy.uint8",
        DType::I32 => "a.astype(numpy.int32)",
        DType::I16 => "a.astype(numpy.int16)",
        DType::I8 => "a.astype(numpy.int8)",
        DType::U8 => "a.astype(numpy.uint8)",
        DType::Bool => "a.astype(numpy.bool_)",
    }
}

/// Reads a contiguous matrix of the given element type.
///
/// # Errors
/// See [`NpyErrorKind`]; never a panic, and never an allocation larger than the file.
pub fn read(path: &Path, dtype: DType) -> Result<Tensor, NpyError> {
    read_file(path, dtype).map_err(|kind| NpyError { path: path.to_owned(), kind })
}

fn read_file(path: &Path, dtype: DType) -> Result<Tensor, NpyErrorKind> {
    let file = File::open(path)?;
    let info = file.metadata()?;
    if info.is_file() {
        return read_from(BufReader::with_capacity(1 << 20, file), info.len(), dtype);
    }
    // A pipe has no length of its own.
    let mut bytes = Vec::new();
    BufReader::new(file).read_to_end(&mut bytes)?;
    read_from(bytes.as_slice(), bytes.len() as u64, dtype)
}

/// Reads a matrix from `from`, which holds `len` bytes in all.
fn read_from(mut from: impl Read, len: u64, dtype: DType) -> Result<Tensor, NpyErrorKind> {
    let header = Header::read(&mut from)?;
    let swap =
        header.byte_order(dtype).ok_or_else(|| NpyErrorKind::Type { found: header.descr.clone(), required: dtype })?;
    let shape = header.shape_text();
    let [rows, cols] = match header.shape[..] {
        [] => [1, 1],
        [n] => [1, n],
        [m, n] => [m, n],
        _ => [0, 0],
    };
    if rows == 0 || cols == 0 {
        return Err(NpyErrorKind::Shape { found: shape });
    }
    let required = rows.checked_mul(cols).and_then(|n| n.checked_mul(dtype.bytes().0));
    let found = len.saturating_sub(header.len);
    if required != Some(found) {
        return Err(NpyErrorKind::Length { found, required, shape, dtype });
    }
    let mut matrix = Tensor::new(dtype, TensorLayout::contiguous(rows, cols)).map_err(Box::new)?;
    with_scalar!(dtype, T => if header.fortran_order {
        read_columns::<T>(&mut from, &mut matrix, swap)?;
    } else {
        for row in 0..rows {
            read_elements(&mut from, matrix.row_mut::<T>(row).unwrap_or_default(), swap)?;
        }
    });
    Ok(matrix)
}

/// The bytes of elements, to read into.
fn bytes_mut<T: crate::dtype::Element>(elements: &mut [T]) -> &mut [u8] {
    // SAFETY: `Element` types have no padding and allow every bit pattern; the borrow is passed on.
    unsafe { core::slice::from_raw_parts_mut(elements.as_mut_ptr().cast(), size_of_val(elements)) }
}

/// The bytes of elements.
fn bytes<T: crate::dtype::Element>(elements: &[T]) -> &[u8] {
    // SAFETY: `Element` types have no padding.
    unsafe { core::slice::from_raw_parts(elements.as_ptr().cast(), size_of_val(elements)) }
}

fn read_elements<T: crate::dtype::Element>(from: &mut impl Read, to: &mut [T], swap: bool) -> io::Result<()> {
    from.read_exact(bytes_mut(to))?;
    if swap {
        bytes_mut(to).chunks_exact_mut(size_of::<T>()).for_each(<[u8]>::reverse);
    }
    Ok(())
}

/// Reads a matrix that is stored column by column.
fn read_columns<T: crate::verify::Scalar>(from: &mut impl Read, to: &mut Tensor, swap: bool) -> io::Result<()> {
    let mut column = vec![T::of_bits(0); to.rows() as usize];
    for j in 0..to.cols() as usize {
        read_elements(from, &mut column, swap)?;
        for (i, value) in (0_u64..).zip(&column) {
            if let Some(slot) = to.row_mut::<T>(i).and_then(|r| r.get_mut(j)) {
                *slot = *value;
            }
        }
    }
    Ok(())
}

/// Writes a matrix as a C-ordered array of shape `(M, N)`, without its gaps; replaces a file of that name.
///
/// # Errors
/// Where the operating system says no; the file of that name is then as it was.
pub fn write(path: &Path, matrix: &Tensor) -> Result<(), NpyError> {
    write_file(path, matrix).map_err(|error| NpyError { path: path.to_owned(), kind: error.into() })
}

fn write_file(path: &Path, matrix: &Tensor) -> io::Result<()> {
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let mut builder = tempfile::Builder::new();
    builder.prefix(".npy-");
    // As any new file: what the umask allows, not the private mode of temporary files.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut file = builder.tempfile_in(folder)?;
    let mut to = BufWriter::with_capacity(1 << 20, file.as_file_mut());
    to.write_all(&header::encode(matrix.dtype(), [matrix.rows(), matrix.cols()]))?;
    with_scalar!(matrix.dtype(), T => for row in 0..matrix.rows() {
        let row = matrix.row::<T>(row).unwrap_or_default();
        if cfg!(target_endian = "little") {
            to.write_all(bytes(row))?;
        } else {
            let mut row = row.to_vec();
            bytes_mut(&mut row).chunks_exact_mut(size_of::<T>()).for_each(<[u8]>::reverse);
            to.write_all(bytes(&row))?;
        }
    });
    to.flush()?;
    drop(to);
    file.persist(path).map_err(|e| e.error)?;
    Ok(())
}
