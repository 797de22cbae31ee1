//! NumPy's `.npy` files (NumPy, "NEP 1" and `numpy.lib.format`): versions 1.0 to 3.0, both byte orders, C and Fortran
//! order.
//!
//! The axes of an array are the modes of a [`Tensor`], in their order, 1 to 5 of them. An array of shape `()` is `1:1`. Where the
//! tensor has more modes than the array, those of stride 0 or of extent 1 have no axis: `(n,)` is a row `(1,n)`. bfloat16, which NumPy
//! does not know, is read from `<V2` (what `ml_dtypes` saves) and from the bits in a `<u2`, and written as `<u2`. A tensor whose
//! first mode runs fastest is written in Fortran order, every other one in C order, both without gaps: byte for byte what
//! `numpy.save` writes for the same array.
//!
//! A file is read only if its length agrees with its header, so that no header can ask for more memory than the file
//! has. A pipe such as `/dev/stdin` is read as far as its header promises; devices and named pipes are refused. A file
//! is written beside its place, measured, and renamed, so that no reader ever sees half of it. Both use a buffer of
//! fixed size.
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

mod fit;
mod order;
mod stream;
mod write;

use std::io::{self, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};

pub use ptx_exec::npy::HeaderError;
use ptx_exec::npy::{Header, source};
pub use write::write;

use crate::diagnostic::debug_as_display;
use crate::dtype::DType;
use crate::tensor::{ShapeMismatch, Tensor, TensorError, with_scalar};
use crate::view::{MAX_RANK, ViewLayout};

/// Bytes of elements that are read from a pipe.
const MOST_OF_A_PIPE: u64 = 64 << 30;

/// A file's error, and which file.
#[derive(thiserror::Error)]
#[error("{}: {kind}", path.display())]
pub struct NpyError {
    /// The file.
    pub path: PathBuf,
    /// The error.
    #[source]
    pub kind: NpyErrorKind,
}

debug_as_display!(NpyError);

/// The kind of a file's error.
#[derive(thiserror::Error)]
pub enum NpyErrorKind {
    /// The operating system says no.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// It is not a `.npy` file, or is damaged.
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
        /// The type that the caller reads.
        required: DType,
    },
    /// It has too many axes.
    #[error(
        "found shape {found}, required at most {MAX_RANK} axes\n  help: a.reshape(..) in numpy, or a.squeeze() for axes of one element"
    )]
    Shape {
        /// The shape of the file, as Python writes it.
        found: String,
    },
    /// The tensor has one element for all coordinates of a mode, and the array has several.
    #[error(
        "found shape {found} with different elements where {tensor} has stride 0, required the same element at each of these \
         coordinates\n  help: pass the array with extent 1 there, as a[:1] in numpy"
    )]
    Varies {
        /// The shape of the file.
        found: String,
        /// The layout of the tensor.
        tensor: Box<ViewLayout>,
    },
    /// The tensor to read into is another one.
    #[error(transparent)]
    Into(#[from] Box<ShapeMismatch>),
    /// The written size is wrong.
    #[error(
        "wrote {found} bytes, required {required}; the file of that name is as it was\n  help: look for room on the file system"
    )]
    Written {
        /// Bytes of the file that was written.
        found: u64,
        /// Bytes of the header and of all elements.
        required: u64,
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

debug_as_display!(NpyErrorKind);

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

/// An array in a file whose header was read. Its type and shape are known; its elements are still to be read.
///
/// ```
/// use cutemplate::dtype::DType;
/// use cutemplate::verify::{Fill, Tensor, npy};
/// use cutemplate::view::ViewLayout;
///
/// let path = tempfile::tempdir()?.keep().join("cube.npy");
/// let column_major = ViewLayout::strided(&[3, 4, 5], &[1, 3, 12]).unwrap();
/// let mut cube = Tensor::new(DType::F16, column_major)?;
/// cube.fill(Fill::Normal, 1);
/// npy::write(&path, &cube)?;
///
/// let array = npy::open(&path, DType::F16)?;
/// assert_eq!((array.shape(), array.is_fortran_order()), (&[3, 4, 5][..], true));
/// let mut padded = Tensor::new(DType::F16, ViewLayout::strided(&[3, 4, 5], &[32, 8, 1]).unwrap())?;
/// array.read_into(&mut padded)?;
/// assert_eq!(padded.bits_at(&[2, 3, 4]), cube.bits_at(&[2, 3, 4]));
/// # std::fs::remove_dir_all(path.parent().unwrap())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Array {
    path: PathBuf,
    from: Box<dyn Read>,
    dtype: DType,
    swap: bool,
    fortran_order: bool,
    /// Row-major.
    layout: ViewLayout,
}

impl std::fmt::Debug for Array {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Array {} {} of {}", self.dtype, self.layout, self.path.display())
    }
}

/// Opens an array of the given element type, and reads its header.
///
/// # Errors
/// See [`NpyErrorKind`]; never a panic.
pub fn open(path: &Path, dtype: DType) -> Result<Array, NpyError> {
    open_file(path, dtype).map_err(|kind| NpyError { path: path.to_owned(), kind })
}

/// Reads an array of the given element type, as a row-major tensor without gaps.
///
/// # Errors
/// See [`NpyErrorKind`]; never a panic, and never an allocation larger than the file.
pub fn read(path: &Path, dtype: DType) -> Result<Tensor, NpyError> {
    let array = open(path, dtype)?;
    let tensor = Tensor::new(dtype, array.layout);
    let mut tensor = tensor.map_err(|e| NpyError { path: path.to_owned(), kind: Box::new(e).into() })?;
    array.read_into(&mut tensor)?;
    Ok(tensor)
}

fn open_file(path: &Path, dtype: DType) -> Result<Array, NpyErrorKind> {
    let (file, length) = source::open(path)?;
    let mut from = BufReader::with_capacity(stream::BUFFER, file);
    let header = Header::read(&mut from)?;
    let swap = order::of(&header.descr, dtype)
        .ok_or_else(|| NpyErrorKind::Type { found: header.descr.clone(), required: dtype })?;
    let shape = header.shape_text();
    let extents: Option<Vec<i64>> = header.shape.iter().map(|e| i64::try_from(*e).ok()).collect();
    let required = header.shape.iter().try_fold(dtype.bytes().0, |bytes, extent| bytes.checked_mul(*extent));
    let (from, found): (Box<dyn Read>, u64) = match length {
        Some(length) => (Box::new(from), length.saturating_sub(header.len)),
        // A pipe has no length of its own. A byte more than the header promises shows that it is longer.
        None => {
            let most = required.unwrap_or(0).saturating_add(1).min(MOST_OF_A_PIPE);
            let mut bytes = Vec::new();
            from.take(most).read_to_end(&mut bytes)?;
            let found = bytes.len() as u64;
            (Box::new(Cursor::new(bytes)), found)
        }
    };
    if header.shape.len() > MAX_RANK {
        return Err(NpyErrorKind::Shape { found: shape });
    }
    let layout = extents.and_then(|e| ViewLayout::row_major(if e.is_empty() { &[1] } else { &e }));
    match layout {
        Some(layout) if required == Some(found) => {
            let fortran_order = header.fortran_order;
            Ok(Array { path: path.to_owned(), from, dtype, swap, fortran_order, layout })
        }
        _ => Err(NpyErrorKind::Length { found, required, shape, dtype }),
    }
}

impl Array {
    /// The extent of each axis; `[1]` for an array without axes.
    pub fn shape(&self) -> &[i64] {
        self.layout.shape()
    }

    /// Whether the first index runs fastest in the file.
    pub fn is_fortran_order(&self) -> bool {
        self.fortran_order
    }

    /// Whether a tensor of that layout can be filled from it, as [`Array::read_into`] says.
    pub fn fits(&self, tensor: &ViewLayout) -> bool {
        fit::extents(self.shape(), tensor).is_some()
    }

    /// Reads all elements into a tensor of the same type and shape, whatever its strides.
    ///
    /// Axes stand in the order of the modes. Where the tensor has stride 0, the array may have extent 1, or lack the axis: a
    /// tensor `(M,N):(0,1)` takes an array `(M,N)` of equal rows, `(1,N)` or `(N,)`. Extents of 1 in front do not count.
    ///
    /// # Errors
    /// Another type or shape; rows that differ although the tensor has one for all; an error of the operating system.
    /// The tensor then holds the part that was read.
    pub fn read_into(self, tensor: &mut Tensor) -> Result<(), NpyError> {
        let path = self.path.clone();
        self.fill(tensor).map_err(|kind| NpyError { path, kind })
    }

    fn fill(mut self, tensor: &mut Tensor) -> Result<(), NpyErrorKind> {
        let layout = tensor.layout().layout;
        let extents = fit::extents(self.shape(), &layout).filter(|_| self.dtype == tensor.dtype());
        let placed = extents.and_then(|extents| ViewLayout::strided(&extents, layout.stride()));
        let Some(placed) = placed else {
            let left = format!("the array {} {}", self.dtype, self.layout);
            return Err(Box::new(ShapeMismatch { left, right: format!("{tensor:?}") }).into());
        };
        if placed == placed.distinct() {
            return Ok(self.elements(&placed, tensor)?);
        }
        let dense = ViewLayout::row_major(placed.shape()).unwrap_or(placed);
        let mut all = Tensor::new(self.dtype, dense).map_err(Box::new)?;
        self.elements(&dense, &mut all)?;
        let same = with_scalar!(self.dtype, T => match (all.span::<T>(), tensor.span_mut::<T>()) {
            (Some(all), Some(span)) => stream::gather(all, span, &placed),
            _ => true,
        });
        if same {
            Ok(())
        } else {
            Err(NpyErrorKind::Varies { found: self.layout.to_string(), tensor: Box::new(layout) })
        }
    }

    /// The elements of the file, at `placed` in the tensor's memory.
    fn elements(&mut self, placed: &ViewLayout, tensor: &mut Tensor) -> io::Result<()> {
        if placed.size() == Some(0) {
            return Ok(());
        }
        let runs = stream::Runs::of(placed, self.fortran_order);
        with_scalar!(self.dtype, T => match tensor.span_mut::<T>() {
            Some(span) => stream::read(&mut self.from, span, runs, self.swap),
            None => Ok(()),
        })
    }
}
