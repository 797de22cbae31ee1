//! The elements of a tensor in the order of a file, through a buffer of fixed size.

use std::io::{self, Read, Write};

use crate::dtype::Element;
use crate::tensor::{Scalar, Walk};
use crate::view::ViewLayout;

/// Bytes of the buffer.
pub(super) const BUFFER: usize = 1 << 20;

/// The bytes of elements, to read into.
fn bytes_mut<T: Element>(elements: &mut [T]) -> &mut [u8] {
    // SAFETY: `Element` types have no padding and allow every bit pattern; the borrow is passed on.
    unsafe { core::slice::from_raw_parts_mut(elements.as_mut_ptr().cast(), size_of_val(elements)) }
}

/// The bytes of elements.
fn bytes<T: Element>(elements: &[T]) -> &[u8] {
    // SAFETY: `Element` types have no padding.
    unsafe { core::slice::from_raw_parts(elements.as_ptr().cast(), size_of_val(elements)) }
}

/// Turns the bytes of each element around.
fn swap_bytes<T: Element>(elements: &mut [T]) {
    bytes_mut(elements).chunks_exact_mut(size_of::<T>()).for_each(<[u8]>::reverse);
}

/// The elements of a tensor in the order of a file, in runs of one stride.
pub(super) struct Runs {
    starts: Walk,
    extent: usize,
    stride: usize,
}

impl Runs {
    /// In C order the last index runs fastest, in Fortran order the first.
    pub(super) fn of(layout: &ViewLayout, fortran_order: bool) -> Self {
        // The fastest mode first. Modes of one element do not count, and a mode that continues the one inside is merged
        // with it.
        let modes = || layout.shape().iter().copied().zip(layout.stride().iter().copied());
        let ordered: Vec<(i64, i64)> = if fortran_order { modes().collect() } else { modes().rev().collect() };
        let mut merged: Vec<(i64, i64)> = Vec::new();
        for (extent, stride) in ordered.into_iter().filter(|(extent, _)| *extent != 1) {
            match merged.last_mut() {
                Some(inner) if inner.0.checked_mul(inner.1) == Some(stride) => inner.0 *= extent,
                _ => merged.push((extent, stride)),
            }
        }
        let (extent, stride) = if merged.is_empty() { (1, 1) } else { merged.remove(0) };
        let (shape, strides): (Vec<i64>, Vec<i64>) = merged.into_iter().rev().unzip();
        let outer = ViewLayout::strided(&shape, &strides).unwrap_or(ViewLayout::matrix([1, 1], 1));
        Self { starts: Walk::new(&outer), extent: extent as usize, stride: stride as usize }
    }
}

/// Reads the elements of a tensor, which lie in `span`.
pub(super) fn read<T: Element>(from: &mut impl Read, span: &mut [T], runs: Runs, swap: bool) -> io::Result<()> {
    let Runs { starts, extent, stride } = runs;
    let mut buffer: Vec<T> = Vec::new();
    for start in starts {
        if stride == 1 {
            let run = &mut span[start..start + extent];
            from.read_exact(bytes_mut(run))?;
            if swap {
                swap_bytes(run);
            }
            continue;
        }
        let part = extent.clamp(1, BUFFER / size_of::<T>());
        for first in (0..extent).step_by(part) {
            let count = part.min(extent - first);
            // Any element will do to begin with.
            buffer.resize(count, span[start]);
            from.read_exact(bytes_mut(&mut buffer))?;
            if swap {
                swap_bytes(&mut buffer);
            }
            for (i, value) in (first..).zip(&buffer) {
                span[start + i * stride] = *value;
            }
        }
    }
    Ok(())
}

/// Copies elements, row-major in `from`, to their places in `to`. False where two different ones have the same place.
pub(super) fn gather<T: Scalar>(from: &[T], to: &mut [T], placed: &ViewLayout) -> bool {
    for (value, at) in from.iter().zip(Walk::new(placed)) {
        to[at] = *value;
    }
    from.iter().zip(Walk::new(placed)).all(|(value, at)| to[at].bits() == value.bits())
}

/// Writes the elements of a tensor, which lie in `span`, as little-endian.
pub(super) fn write<T: Element>(to: &mut impl Write, span: &[T], runs: Runs) -> io::Result<()> {
    let Runs { starts, extent, stride } = runs;
    let part = extent.clamp(1, BUFFER / size_of::<T>());
    let mut buffer: Vec<T> = Vec::new();
    for start in starts {
        for first in (0..extent).step_by(part) {
            let count = part.min(extent - first);
            let at = start + first * stride;
            if stride == 1 && cfg!(target_endian = "little") {
                to.write_all(bytes(&span[at..at + count]))?;
                continue;
            }
            buffer.clear();
            buffer.extend((0..count).map(|i| span[at + i * stride]));
            if cfg!(target_endian = "big") {
                swap_bytes(&mut buffer);
            }
            to.write_all(bytes(&buffer))?;
        }
    }
    Ok(())
}
