//! Arrays of launch files: NumPy's `.npy`, whose elements are taken as bytes.

use std::io::{self, Read};
use std::path::Path;

use super::bad;
use crate::Error;
use crate::npy::{self, Header, source};
use crate::types::Ty;

/// The largest array, in bytes.
const MOST: u64 = 16 << 30;

/// A NumPy array: its header as it stands in the file, and its elements.
#[derive(Debug)]
pub(super) struct Array {
    pub(super) header: Vec<u8>,
    /// NumPy's name of the elements' type.
    pub(super) descr: String,
    pub(super) shape: Vec<u64>,
    pub(super) data: Vec<u8>,
    /// Whether the first index runs fastest, where that makes a difference.
    pub(super) is_fortran: bool,
}

/// Keeps what was read.
struct Kept<R> {
    from: R,
    bytes: Vec<u8>,
}

impl<R: Read> Read for Kept<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let n = self.from.read(into)?;
        self.bytes.extend_from_slice(&into[..n]);
        Ok(n)
    }
}

/// Reads an array. `key` is where the launch file names it.
pub(super) fn read(path: &Path, key: &str) -> Result<Array, Error> {
    let place = || format!("{}, by `{key}`", path.display());
    let fail = |what: &str, found: String| {
        bad(what).found(format!("{}: {found}", place())).required("an array of numbers, as numpy.save writes it")
    };
    let cannot = |e: io::Error| fail("a file cannot be read", e.to_string());
    let (file, length) = source::open(path).map_err(cannot)?;
    let mut from = Kept { from: file, bytes: Vec::new() };
    let header = Header::read(&mut from).map_err(|e| fail("a file is not a .npy file", e.to_string()))?;
    let size = element(&header.descr).map_err(|(what, help)| {
        let error =
            fail("an array has elements of a type that kernels do not read", format!("{what}: {}", header.descr));
        if help.is_empty() { error } else { error.help(help) }
    })?;
    let bytes = header.shape.iter().try_fold(size, |all, extent| all.checked_mul(*extent)).filter(|all| *all <= MOST);
    let Some(bytes) = bytes else {
        return Err(fail("an array is too large", format!("shape {} of {size} B each", header.shape_text()))
            .required(format!("at most {MOST} B")));
    };
    let wrong =
        |found: u64| {
            fail("the length of a .npy file differs from its header", format!("{found} B of elements"))
                .required(format!("{bytes} B for shape {} of {}", header.shape_text(), header.descr))
        };
    if let Some(found) = length.map(|length| length.saturating_sub(header.len)).filter(|found| *found != bytes) {
        return Err(wrong(found));
    }
    let Kept { from, bytes: head } = from;
    let data = source::rest(from, bytes, bytes).map_err(|e| match e.kind() {
        io::ErrorKind::FileTooLarge => wrong(bytes.saturating_add(1)),
        _ => cannot(e),
    })?;
    if data.len() as u64 != bytes {
        return Err(wrong(data.len() as u64));
    }
    let is_fortran = header.fortran_order && header.shape.iter().filter(|extent| **extent > 1).count() > 1;
    Ok(Array { header: head, descr: header.descr, shape: header.shape, data, is_fortran })
}

impl Array {
    /// The coordinates of an element by its place in the file.
    pub(super) fn index(&self, place: u64) -> Vec<u64> {
        let (mut rest, mut index) = (place, vec![0; self.shape.len()]);
        let mut step = |mode: usize| {
            index[mode] = rest % self.shape[mode].max(1);
            rest /= self.shape[mode].max(1);
        };
        match self.is_fortran {
            true => (0..self.shape.len()).for_each(&mut step),
            false => (0..self.shape.len()).rev().for_each(&mut step),
        }
        index
    }
}

/// Bytes of an element, or what is wrong with it and what helps.
///
/// NumPy, "Array interface": byte order, kind, size.
fn element(descr: &str) -> Result<u64, (&'static str, &'static str)> {
    if descr.starts_with('[') {
        return Err(("records", "save each field by itself, or a.view(numpy.uint8)"));
    }
    let unknown = ("a type that is not read here", "a.view(numpy.uint8) gives its bytes");
    let (order, kind) = (descr.chars().next().unwrap_or(' '), descr.chars().nth(1).unwrap_or(' '));
    match kind {
        'O' => return Err(("Python objects, which have no bytes in the file", "a.astype(numpy.float32)")),
        'U' => return Err(("text", "numpy.char.encode(a) gives bytes")),
        'M' | 'm' => return Err(("times", "a.view(numpy.int64)")),
        'b' | 'i' | 'u' | 'f' | 'c' | 'V' | 'S' | '?' => {}
        _ => return Err(unknown),
    }
    let size: u64 = descr.get(2..).and_then(|size| size.parse().ok()).ok_or(unknown)?;
    match order {
        '<' | '|' | '=' => Ok(size),
        '>' if size <= 1 || matches!(kind, 'V' | 'S') => Ok(size),
        '>' => Err(("big-endian numbers", "a.astype(a.dtype.newbyteorder('<'))")),
        _ => Err(unknown),
    }
}

/// The header of an array without one: of so many elements, or of one alone.
pub(super) fn header(descr: &str, elements: Option<u64>) -> Vec<u8> {
    npy::encode(descr, elements.as_slice(), false)
}

/// NumPy's name of a type of PTX; types that it lacks are bits.
pub(super) fn descr(ty: Ty) -> &'static str {
    match ty {
        Ty::S8 => "|i1",
        Ty::S16 => "<i2",
        Ty::S32 => "<i4",
        Ty::S64 => "<i8",
        Ty::F16 => "<f2",
        Ty::F32 | Ty::Tf32 => "<f4",
        Ty::F64 => "<f8",
        _ => match ty.bytes() {
            1 => "|u1",
            2 => "<u2",
            4 => "<u4",
            8 => "<u8",
            _ => "|V16",
        },
    }
}
