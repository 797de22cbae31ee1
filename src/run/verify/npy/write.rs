//! Writing, so that a file is whole or not there.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use ptx_exec::npy;

use super::{NpyError, NpyErrorKind, stream};
use crate::tensor::{Tensor, with_scalar};
use crate::view::ViewLayout;

/// Writes a tensor of any strides, without its gaps: in Fortran order if its first mode runs fastest, else in C order.
/// Replaces an existing file. Writes into pipes and devices as they are.
///
/// # Errors
/// An error of the operating system, or a written size that is wrong. An existing file is then unchanged.
pub fn write(path: &Path, tensor: &Tensor) -> Result<(), NpyError> {
    // The target of a link is replaced, not the link.
    let place = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let written = match fs::metadata(&place) {
        Ok(info) if !info.is_file() && !info.is_dir() => through(&place, tensor),
        _ => replace(&place, tensor),
    };
    written.map_err(|kind| NpyError { path: path.to_owned(), kind })
}

fn through(place: &Path, tensor: &Tensor) -> Result<(), NpyErrorKind> {
    elements(&mut File::options().write(true).open(place)?, tensor).map(|_| ())
}

fn replace(place: &Path, tensor: &Tensor) -> Result<(), NpyErrorKind> {
    let folder = match place.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let mut builder = tempfile::Builder::new();
    builder.prefix(".npy-");
    // As for any new file: the umask's permissions, not the private mode of temporary files.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut file = builder.tempfile_in(folder)?;
    let required = elements(file.as_file_mut(), tensor)?;
    // Where a file system finds out late that it is full, it says so here.
    file.as_file().sync_all()?;
    let found = file.as_file().metadata()?.len();
    if found != required {
        return Err(NpyErrorKind::Written { found, required });
    }
    file.persist(place).map_err(|e| e.error)?;
    Ok(())
}

/// Writes header and elements, and returns how many bytes that has to be.
fn elements(file: &mut File, tensor: &Tensor) -> Result<u64, NpyErrorKind> {
    let (dtype, layout) = (tensor.dtype(), tensor.layout().layout);
    let fortran_order = is_fortran_order(&layout);
    // Extents of a tensor are not negative.
    let extents: Vec<u64> = layout.shape().iter().map(|n| n.unsigned_abs()).collect();
    let header = npy::encode(dtype.npy_descriptors()[0], &extents, fortran_order);
    let mut to = BufWriter::with_capacity(stream::BUFFER, file);
    to.write_all(&header)?;
    let runs = stream::Runs::of(&layout, fortran_order);
    with_scalar!(dtype, T => {
        let span = tensor.span::<T>().ok_or_else(|| io::Error::other(format!("{tensor:?} has no elements of {dtype}")))?;
        stream::write(&mut to, span, runs)?;
    });
    to.flush()?;
    Ok(header.len() as u64 + tensor.size() * dtype.bytes().0)
}

/// Whether the first mode runs fastest, the second next, and so on. A tensor that is also in C order does not count, as
/// in NumPy.
fn is_fortran_order(layout: &ViewLayout) -> bool {
    let modes = || layout.shape().iter().zip(layout.stride()).filter(|(extent, _)| **extent != 1).map(|(_, d)| *d);
    modes().count() > 1 && modes().all(|stride| stride > 0) && modes().is_sorted_by(|inner, outer| inner < outer)
}
