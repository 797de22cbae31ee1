//! What cannot be analysed.

use core::fmt;

use crate::diagnostic::{Code, debug_as_display};
use crate::layout::{Layout, Swizzle};
use crate::units::{Bytes, Elements};

/// A tensor in shared memory, or an access to it, that no kernel can have.
#[derive(Clone, PartialEq, Eq)]
pub struct SharedError {
    /// Which check failed.
    pub code: Code,
    /// The actual value.
    pub found: String,
    /// The required value.
    pub required: String,
    /// Why it has to.
    pub because: String,
    /// What to do.
    pub help: String,
}

debug_as_display!(SharedError);

impl fmt::Display for SharedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { code, found, required, because, help } = self;
        write!(f, "{code}: found {found}; required: {required}; because {because}; help: {help}")
    }
}

impl core::error::Error for SharedError {}

fn refuse(code: Code, found: String, required: String, because: &str, help: &str) -> SharedError {
    SharedError { code, found, required, because: because.to_owned(), help: help.to_owned() }
}

pub(super) fn element(name: &str, element: Bytes) -> SharedError {
    refuse(
        Code::VectorWidth,
        format!("{name} with elements of {element}"),
        "elements of 1, 2, 4, 8 or 16 bytes".into(),
        "one thread loads or stores one of these widths at once (PTX ISA, `ld.shared`)",
        "describe a struct as several elements",
    )
}

pub(super) fn layout(name: &str, layout: &Layout) -> SharedError {
    refuse(
        Code::TileSize,
        format!("{name} with layout {layout}"),
        "a layout of integers, with strides of 0 or more".into(),
        "addresses are counted from the start of the tensor, and all of them must be known",
        "give the tile its size, as in (128,8):(1,128)",
    )
}

pub(super) fn swizzle(name: &str, swizzle: Swizzle, elements: Elements) -> SharedError {
    refuse(
        Code::InBounds,
        format!("{name}: {swizzle}, which permutes blocks of {}, over {elements}", Elements(swizzle.block() as u64)),
        format!("a multiple of {}", Elements(swizzle.block() as u64)),
        "an element would be moved out of the tensor",
        "a swizzle with smaller M + B + |S|, or a larger tile",
    )
}

pub(super) fn width(name: &str, what: &str, bytes: Bytes, element: Bytes) -> SharedError {
    refuse(
        Code::VectorWidth,
        format!("{name}, {what}: {bytes} for each thread, elements of {element}"),
        "1, 2, 4, 8 or 16 bytes, and whole elements".into(),
        "those are the widths of loads and stores of one thread (PTX ISA, `ld.shared`)",
        "several instructions for wider values",
    )
}

pub(super) fn outside(name: &str, what: &str, place: &str, index: i64, size: i64) -> SharedError {
    refuse(
        Code::InBounds,
        format!("{name}, {what}: {place} moves element {index}"),
        format!("elements 0 to {}", size - 1),
        "the thread would touch the memory of another tensor",
        "a thread layout that divides the tile, or lanes that take no part",
    )
}

pub(super) fn stages(name: &str, apart: Bytes, alignment: Bytes) -> SharedError {
    refuse(
        Code::VectorAlignment,
        format!("{name}: stages that lie {apart} apart"),
        format!("a multiple of {alignment}, its widest access"),
        "the GPU faults on a vector whose address is not a multiple of its size (CUDA C++ Programming Guide, \"Device \
         Memory Accesses\")",
        "strides that are multiples of the vector, or a smaller vector",
    )
}

pub(super) fn unaligned(name: &str, what: &str, place: &str, address: i64, bytes: Bytes) -> SharedError {
    refuse(
        Code::VectorAlignment,
        format!("{name}, {what}: {place} moves {bytes} at byte {address}"),
        format!("an address that is a multiple of {bytes}"),
        "the GPU faults on a vector whose address is not a multiple of its size (CUDA C++ Programming Guide, \"Device \
         Memory Accesses\")",
        "strides that are multiples of the vector, a swizzle with a larger M, or a smaller vector",
    )
}
