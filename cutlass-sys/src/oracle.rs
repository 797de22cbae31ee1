//! CuTe's layout algebra itself, compiled from the CUTLASS headers for run-time integers of 64 bits: a second witness for
//! whoever computes layouts. Feature `oracle`.
//!
//! CuTe checks no divisibility where an integer is known at run time only. What it answers here is what a kernel with
//! dynamic layouts would use, right or wrong.
//!
//! ```
//! use cutlass_sys::oracle::{Batch, Binary, Profile};
//! // (4,8):(8,1) o (2,2):(1,4), of which the oracle gives the values in the order of the domain.
//! let a = Batch::new(Profile::P2, vec![4, 8], vec![8, 1])?;
//! let b = Batch::new(Profile::P2, vec![2, 2], vec![1, 4])?;
//! let values = cutlass_sys::oracle::binary(Binary::Composition, &a, &b, 16)?;
//! assert_eq!(values.of(0), Some([0, 8, 1, 9].as_slice()));
//! # Ok::<(), cutlass_sys::oracle::Unsupported>(())
//! ```

use std::fmt;

#[allow(missing_docs, unreachable_pub, non_camel_case_types, non_upper_case_globals, dead_code)]
mod sys {
    include!(concat!(env!("OUT_DIR"), "/oracle.rs"));
}

/// How the leaves of a layout nest. One leaf is a bare integer, not a tuple of rank 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Profile {
    /// `a`
    P1,
    /// `(a,b)`
    P2,
    /// `(a,b,c)`
    P3,
    /// `(a,b,c,d)`
    P4,
    /// `((a,b),c)`
    P21,
    /// `(a,(b,c))`
    P12,
    /// `((a,b),(c,d))`
    P22,
}

impl Profile {
    /// All that are compiled in.
    pub const ALL: [Profile; 7] =
        [Profile::P1, Profile::P2, Profile::P3, Profile::P4, Profile::P21, Profile::P12, Profile::P22];

    /// Those that the right operand of a composition may have.
    pub const RIGHT: [Profile; 4] = [Profile::P1, Profile::P2, Profile::P3, Profile::P12];

    /// The number of leaves.
    #[must_use]
    pub fn leaves(self) -> usize {
        match self {
            Profile::P1 => 1,
            Profile::P2 => 2,
            Profile::P3 | Profile::P21 | Profile::P12 => 3,
            Profile::P4 | Profile::P22 => 4,
        }
    }

    /// The leaves as text, in CuTe's notation.
    #[must_use]
    pub fn text(self, leaves: &[i64]) -> String {
        let pattern = match self {
            Profile::P1 => "#",
            Profile::P2 => "(#,#)",
            Profile::P3 => "(#,#,#)",
            Profile::P4 => "(#,#,#,#)",
            Profile::P21 => "((#,#),#)",
            Profile::P12 => "(#,(#,#))",
            Profile::P22 => "((#,#),(#,#))",
        };
        let mut leaves = leaves.iter();
        pattern
            .chars()
            .map(|c| match c {
                '#' => leaves.next().map(i64::to_string).unwrap_or_default(),
                c => c.to_string(),
            })
            .collect()
    }

    fn id(self) -> sys::oracle_profile {
        match self {
            Profile::P1 => sys::ORACLE_1,
            Profile::P2 => sys::ORACLE_2,
            Profile::P3 => sys::ORACLE_3,
            Profile::P4 => sys::ORACLE_4,
            Profile::P21 => sys::ORACLE_21,
            Profile::P12 => sys::ORACLE_12,
            Profile::P22 => sys::ORACLE_22,
        }
    }
}

/// The oracle was not compiled for such a question, or the numbers of leaves do not fit together.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Unsupported(&'static str);

impl core::fmt::Debug for Unsupported {
    /// As `Display`: `fn main() -> Result<(), _>` shows a message and not a struct.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        core::fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the oracle cannot answer: {}", self.0)
    }
}

impl std::error::Error for Unsupported {}

/// Layouts of one profile: the leaves of the shapes, layout after layout, and those of the strides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    profile: Profile,
    shape: Vec<i64>,
    stride: Vec<i64>,
}

impl Batch {
    /// A batch from leaves.
    ///
    /// # Errors
    /// There are not as many strides as extents, they are not whole layouts, or an extent is not positive.
    pub fn new(profile: Profile, shape: Vec<i64>, stride: Vec<i64>) -> Result<Batch, Unsupported> {
        if shape.len() != stride.len() || !shape.len().is_multiple_of(profile.leaves()) {
            return Err(Unsupported("a layout has as many strides as extents, those of its profile"));
        }
        if shape.iter().any(|extent| *extent < 1) {
            return Err(Unsupported("extents are positive"));
        }
        Ok(Batch { profile, shape, stride })
    }

    /// The profile.
    #[must_use]
    pub fn profile(&self) -> Profile {
        self.profile
    }

    /// The number of layouts.
    #[must_use]
    pub fn count(&self) -> usize {
        self.shape.len() / self.profile.leaves()
    }

    /// One layout as text, `S:D`.
    ///
    /// # Panics
    /// The index is past the count.
    #[must_use]
    pub fn text(&self, index: usize) -> String {
        let leaves = index * self.profile.leaves()..(index + 1) * self.profile.leaves();
        format!("{}:{}", self.profile.text(&self.shape[leaves.clone()]), self.profile.text(&self.stride[leaves]))
    }

    fn raw(&self) -> sys::oracle_batch {
        sys::oracle_batch {
            profile: self.profile.id(),
            count: self.count(),
            shape: self.shape.as_ptr(),
            stride: self.stride.as_ptr(),
        }
    }

    fn check(&self, coords: usize, each: usize) -> Result<(), Unsupported> {
        if coords == self.count() * each { Ok(()) } else { Err(Unsupported("one coordinate for each layout")) }
    }
}

/// Operations of one layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unary {
    /// The layout itself.
    Layout,
    /// `coalesce(layout)`; with run-time integers CuTe merges nothing.
    Coalesce,
    /// `make_layout(shape)`.
    MakeLayout,
    /// `make_layout(shape, LayoutRight{})`.
    MakeLayoutRight,
    /// `right_inverse(layout)`, the first stride being taken for a compile-time 1: CuTe ignores run-time strides.
    RightInverse,
    /// `complement(layout)` of a [`Profile::P1`].
    Complement,
}

/// Operations of two layouts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Binary {
    /// `composition(a, b)`, `b` of a profile in [`Profile::RIGHT`].
    Composition,
    /// `logical_divide(a, b)`, `b` of [`Profile::P1`].
    LogicalDivide,
    /// `logical_product(a, b)`, `a` of [`Profile::P1`] and `b` in [`Profile::RIGHT`].
    LogicalProduct,
    /// `zipped_divide(a, b)`, `b` of [`Profile::P1`].
    ZippedDivide,
}

impl Unary {
    fn id(self) -> u32 {
        match self {
            Unary::Layout => sys::ORACLE_LAYOUT,
            Unary::Coalesce => sys::ORACLE_COALESCE,
            Unary::MakeLayout => sys::ORACLE_MAKE_LAYOUT,
            Unary::MakeLayoutRight => sys::ORACLE_MAKE_LAYOUT_RIGHT,
            Unary::RightInverse => sys::ORACLE_RIGHT_INVERSE,
            Unary::Complement => sys::ORACLE_COMPLEMENT,
        }
    }
}

impl Binary {
    fn id(self) -> u32 {
        match self {
            Binary::Composition => sys::ORACLE_COMPOSITION,
            Binary::LogicalDivide => sys::ORACLE_LOGICAL_DIVIDE,
            Binary::LogicalProduct => sys::ORACLE_LOGICAL_PRODUCT,
            Binary::ZippedDivide => sys::ORACLE_ZIPPED_DIVIDE,
        }
    }
}

/// The values of a batch of results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Values {
    most: usize,
    sizes: Vec<i64>,
    values: Vec<i64>,
}

impl Values {
    fn new(count: usize, most: usize) -> Values {
        Values { most, sizes: vec![0; count], values: vec![0; count * most] }
    }

    fn raw(&mut self) -> sys::oracle_values {
        sys::oracle_values { most: self.most, sizes: self.sizes.as_mut_ptr(), values: self.values.as_mut_ptr() }
    }

    /// The size of a result; `None` where CuTe would divide by zero (a run-time stride of 0 in a right operand).
    #[must_use]
    pub fn size(&self, index: usize) -> Option<i64> {
        self.sizes.get(index).copied().filter(|size| *size != i64::from(sys::ORACLE_DIVIDES_BY_ZERO))
    }

    /// The first values of a result, at most as many as were asked for; `None` where CuTe would divide by zero.
    #[must_use]
    pub fn of(&self, index: usize) -> Option<&[i64]> {
        let count = usize::try_from(self.size(index)?).ok()?.min(self.most);
        self.values.get(index * self.most..index * self.most + count)
    }
}

fn answered(status: std::os::raw::c_int) -> Result<(), Unsupported> {
    if status == 0 { Ok(()) } else { Err(Unsupported("these profiles are not compiled in for this operation")) }
}

/// Answers one operation for every layout of a batch, with at most `most` values of each result.
///
/// # Errors
/// The operation does not take the profile.
pub fn unary(op: Unary, a: &Batch, most: usize) -> Result<Values, Unsupported> {
    let mut out = Values::new(a.count(), most);
    // SAFETY: the batch holds `count` layouts of its profile, and `out` one size and `most` values for each.
    answered(unsafe { sys::oracle_unary(op.id(), a.raw(), out.raw()) })?;
    Ok(out)
}

/// Answers one operation for the pairs of two batches, with at most `most` values of each result.
///
/// # Errors
/// The batches are not of one length, or the operation does not take the profiles.
pub fn binary(op: Binary, a: &Batch, b: &Batch, most: usize) -> Result<Values, Unsupported> {
    let mut out = Values::new(a.count(), most);
    // SAFETY: as in `unary`; the oracle compares the counts before it reads.
    answered(unsafe { sys::oracle_binary(op.id(), a.raw(), b.raw(), out.raw()) })?;
    Ok(out)
}

/// `cosize(layout)` of each layout.
///
/// # Errors
/// None for the profiles that exist.
pub fn cosize(a: &Batch) -> Result<Vec<i64>, Unsupported> {
    let mut out = vec![0; a.count()];
    // SAFETY: the batch holds `count` layouts of its profile, `out` one number for each.
    answered(unsafe { sys::oracle_cosize(a.raw(), out.as_mut_ptr()) })?;
    Ok(out)
}

/// `crd2idx(coord, layout)`, one integer coordinate for each layout.
///
/// # Errors
/// There is not one coordinate for each layout.
pub fn crd2idx(a: &Batch, coords: &[i64]) -> Result<Vec<i64>, Unsupported> {
    a.check(coords.len(), 1)?;
    let mut out = vec![0; a.count()];
    // SAFETY: one coordinate and one result for each of the batch's layouts.
    answered(unsafe { sys::oracle_crd2idx(a.raw(), coords.as_ptr(), out.as_mut_ptr()) })?;
    Ok(out)
}

/// `crd2idx(coord, layout)` with coordinates congruent to the shape: one integer for each leaf.
///
/// # Errors
/// There is not one integer for each leaf.
pub fn crd2idx_congruent(a: &Batch, coords: &[i64]) -> Result<Vec<i64>, Unsupported> {
    a.check(coords.len(), a.profile.leaves())?;
    let mut out = vec![0; a.count()];
    // SAFETY: one integer for each leaf of the batch, one result for each layout.
    answered(unsafe { sys::oracle_crd2idx_congruent(a.raw(), coords.as_ptr(), out.as_mut_ptr()) })?;
    Ok(out)
}

/// `idx2crd(index, shape)`: one integer for each leaf.
///
/// # Errors
/// There is not one index for each layout.
pub fn idx2crd(a: &Batch, indices: &[i64]) -> Result<Vec<i64>, Unsupported> {
    a.check(indices.len(), 1)?;
    let mut out = vec![0; a.shape.len()];
    // SAFETY: one index for each layout, one result for each leaf.
    answered(unsafe { sys::oracle_idx2crd(a.raw(), indices.as_ptr(), out.as_mut_ptr()) })?;
    Ok(out)
}

/// `crd2crd(coord, shape, size(shape))` with coordinates congruent to the shape: the coordinate's index.
///
/// # Errors
/// There is not one integer for each leaf.
pub fn crd2crd(a: &Batch, coords: &[i64]) -> Result<Vec<i64>, Unsupported> {
    a.check(coords.len(), a.profile.leaves())?;
    let mut out = vec![0; a.count()];
    // SAFETY: one integer for each leaf of the batch, one result for each layout.
    answered(unsafe { sys::oracle_crd2crd(a.raw(), coords.as_ptr(), out.as_mut_ptr()) })?;
    Ok(out)
}

/// The width of C++'s run-time integers in a benchmark: `int` or `int64_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Width {
    /// `int32_t`.
    Bits32,
    /// `int64_t`.
    Bits64,
}

impl Width {
    fn bits(self) -> u32 {
        match self {
            Width::Bits32 => 32,
            Width::Bits64 => 64,
        }
    }
}

/// Makes every result of a batch in a C++ loop and keeps none: for benchmarks.
///
/// # Errors
/// As for [`unary`].
pub fn repeat_unary(op: Unary, width: Width, a: &Batch) -> Result<(), Unsupported> {
    // SAFETY: the batch holds `count` layouts of its profile; nothing is written.
    answered(unsafe { sys::oracle_repeat_unary(op.id(), width.bits(), a.raw()) })
}

/// Makes every result of two batches in a C++ loop and keeps none: for benchmarks.
///
/// # Errors
/// As for [`binary`].
pub fn repeat_binary(op: Binary, width: Width, a: &Batch, b: &Batch) -> Result<(), Unsupported> {
    // SAFETY: as in `binary`; nothing is written.
    answered(unsafe { sys::oracle_repeat_binary(op.id(), width.bits(), a.raw(), b.raw()) })
}

/// The sum, modulo 2^64, of `crd2idx` of one integer coordinate for each layout, in a C++ loop: for benchmarks.
///
/// # Errors
/// There is not one coordinate for each layout.
pub fn repeat_crd2idx(width: Width, a: &Batch, coords: &[i64]) -> Result<u64, Unsupported> {
    a.check(coords.len(), 1)?;
    // SAFETY: one coordinate for each of the batch's layouts.
    Ok(unsafe { sys::oracle_repeat_crd2idx(width.bits(), a.raw(), coords.as_ptr()) })
}
