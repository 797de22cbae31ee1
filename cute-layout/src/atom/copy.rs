//! [`CopyAtom`]: one copy instruction, and which thread reads and writes which element.

use super::mma::unknown;
use crate::layout::{Class, Layout, LayoutError, recast_layout};

/// One copy instruction for values of one width (CuTe's `Copy_Atom<Op, T>`).
///
/// Three TV layouts map `(thread, value)` to an abstract offset. *src* says which thread reads, *dst* which thread
/// receives. *ref*, one of the two, is the one in which a [`TiledCopy`](super::TiledCopy)'s TV layout is meant. For an
/// `ldmatrix`, src is the row whose address a thread gives, and dst is the fragment that it gets: they differ.
///
/// ```
/// use cute_layout::atom::CopyAtom;
/// let atom = CopyAtom::named("SM75_U32x4_LDSM_N", 16)?;
/// assert_eq!(atom.src().to_string(), "(32,8):(8,1)");
/// assert_eq!(atom.dst().to_string(), "(32,(2,4)):(2,(1,64))");
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CopyAtom {
    name: String,
    value_bits: i64,
    thr_id: Layout,
    src: Layout,
    dst: Layout,
    reference: Layout,
    source: (&'static str, &'static str),
}

/// Layouts to bits, as `Copy_Traits` has them.
struct Row {
    name: &'static str,
    thr_id: &'static str,
    src: &'static str,
    dst: &'static str,
    ref_is_dst: bool,
    source: (&'static str, &'static str),
}

const fn row(
    name: &'static str,
    thr_id: &'static str,
    src: &'static str,
    dst: &'static str,
    ref_is_dst: bool,
    source: (&'static str, &'static str),
) -> Row {
    Row { name, thr_id, src, dst, ref_is_dst, source }
}

const UNIVERSAL: (&str, &str) = ("cute/atom/copy_traits.hpp", "ld, st");
const LDSM: (&str, &str) = ("cute/atom/copy_traits_sm75.hpp", "ldmatrix");
const STSM: (&str, &str) = ("cute/atom/copy_traits_sm90.hpp", "stmatrix");
const ASYNC: (&str, &str) = ("cute/atom/copy_traits_sm80.hpp", "cp.async");

// Rows of 16 bytes whose address thread 0 to 7 (15, 31) gives, and the registers of all 32 threads.
const ROWS_X1: &str = "((8,4),128):((128,0),1)";
const ROWS_X2: &str = "((16,2),128):((128,0),1)";
const ROWS_X4: &str = "(32,128):(128,1)";
const N_X1: &str = "(32,32):(32,1)";
const N_X2: &str = "(32,(32,2)):(32,(1,1024))";
const N_X4: &str = "(32,(32,4)):(32,(1,1024))";
const T_X1: &str = "((4,8),(16,2)):((256,16),(1,128))";
const T_X2: &str = "((4,8),(16,2,2)):((256,16),(1,128,1024))";
const T_X4: &str = "((4,8),(16,2,4)):((256,16),(1,128,1024))";
const WARP: &str = "32:1";

const fn one(name: &'static str, bits: &'static str, source: (&'static str, &'static str)) -> Row {
    row(name, "1:0", bits, bits, false, source)
}

const TABLE: &[Row] = &[
    one("UniversalCopy<uint8_t>", "(1,8):(0,1)", UNIVERSAL),
    one("UniversalCopy<uint16_t>", "(1,16):(0,1)", UNIVERSAL),
    one("UniversalCopy<uint32_t>", "(1,32):(0,1)", UNIVERSAL),
    one("UniversalCopy<uint64_t>", "(1,64):(0,1)", UNIVERSAL),
    one("UniversalCopy<uint128_t>", "(1,128):(0,1)", UNIVERSAL),
    one("SM80_CP_ASYNC_CACHEALWAYS<uint32_t>", "(1,32):(0,1)", ASYNC),
    one("SM80_CP_ASYNC_CACHEALWAYS<uint64_t>", "(1,64):(0,1)", ASYNC),
    one("SM80_CP_ASYNC_CACHEALWAYS<uint128_t>", "(1,128):(0,1)", ASYNC),
    one("SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>", "(1,128):(0,1)", ASYNC),
    row("SM75_U32x1_LDSM_N", WARP, ROWS_X1, N_X1, true, LDSM),
    row("SM75_U32x2_LDSM_N", WARP, ROWS_X2, N_X2, true, LDSM),
    row("SM75_U32x4_LDSM_N", WARP, ROWS_X4, N_X4, true, LDSM),
    row("SM75_U16x2_LDSM_T", WARP, ROWS_X1, T_X1, true, LDSM),
    row("SM75_U16x4_LDSM_T", WARP, ROWS_X2, T_X2, true, LDSM),
    row("SM75_U16x8_LDSM_T", WARP, ROWS_X4, T_X4, true, LDSM),
    row("SM90_U32x1_STSM_N", WARP, N_X1, ROWS_X1, false, STSM),
    row("SM90_U32x2_STSM_N", WARP, N_X2, ROWS_X2, false, STSM),
    row("SM90_U32x4_STSM_N", WARP, N_X4, ROWS_X4, false, STSM),
    row("SM90_U16x2_STSM_T", WARP, T_X1, ROWS_X1, false, STSM),
    row("SM90_U16x4_STSM_T", WARP, T_X2, ROWS_X2, false, STSM),
    row("SM90_U16x8_STSM_T", WARP, T_X4, ROWS_X4, false, STSM),
];

impl CopyAtom {
    /// The atom that CuTe calls by this name (`UniversalCopy<uint128_t>`, `SM75_U32x4_LDSM_N`), for values of
    /// `value_bits` bits.
    ///
    /// *Law.* `src`, `dst` and `reference` are `ValLayoutSrc`, `ValLayoutDst` and `ValLayoutRef` of the C++ type.
    ///
    /// *Source.* `cute/atom/copy_atom.hpp`, `Copy_Atom`; the traits' header is [`CopyAtom::source`].
    ///
    /// # Errors
    /// No such atom is known here, or it cannot copy values of that width.
    ///
    /// ```
    /// use cute_layout::atom::CopyAtom;
    /// let atom = CopyAtom::named("UniversalCopy<uint128_t>", 16)?;
    /// assert_eq!((atom.counts(), atom.src().to_string()), ((1, 8), "(1,8):(0,1)".into()));
    /// # Ok::<(), cute_layout::layout::LayoutError>(())
    /// ```
    pub fn named(name: &str, value_bits: i64) -> Result<CopyAtom, LayoutError> {
        let row = TABLE
            .iter()
            .find(|row| row.name == name)
            .ok_or_else(|| unknown("Copy_Atom", name, CopyAtom::names().map(str::to_owned)))?;
        let [src, dst] = [row.src.parse::<Layout>()?, row.dst.parse::<Layout>()?];
        let bits = src.mode(1).map_or(1, |values| values.size());
        let in_values = |layout: &Layout| {
            let unfit = value_bits < 1 || bits % value_bits != 0;
            if unfit { Err(wrong_width(name, value_bits, bits)) } else { recast_layout(layout, 1, value_bits) }
        };
        let (src, dst) = (in_values(&src)?, in_values(&dst)?);
        let thr_id: Layout = row.thr_id.parse()?;
        if [&src, &dst].iter().any(|layout| layout.mode(0).map(|threads| threads.size()) != Some(thr_id.size())) {
            return Err(wrong_width(name, value_bits, bits));
        }
        let reference = if row.ref_is_dst { dst.clone() } else { src.clone() };
        Ok(CopyAtom { name: name.to_owned(), value_bits, thr_id, src, dst, reference, source: row.source })
    }

    /// The names of all atoms in the table.
    pub fn names() -> impl Iterator<Item = &'static str> {
        TABLE.iter().map(|row| row.name)
    }

    /// CuTe's name of the operation.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Bits of one value.
    #[must_use]
    pub fn value_bits(&self) -> i64 {
        self.value_bits
    }

    /// From the logical threads of the instruction to thread indices (CuTe's `ThrID`).
    #[must_use]
    pub fn thr_id(&self) -> &Layout {
        &self.thr_id
    }

    /// `(thread, value)` to the offset that it reads, in values (CuTe's `ValLayoutSrc`).
    #[must_use]
    pub fn src(&self) -> &Layout {
        &self.src
    }

    /// `(thread, value)` to the offset that it receives, in values (CuTe's `ValLayoutDst`).
    #[must_use]
    pub fn dst(&self) -> &Layout {
        &self.dst
    }

    /// The one of the two that a TV layout is meant in (CuTe's `ValLayoutRef`).
    #[must_use]
    pub fn reference(&self) -> &Layout {
        &self.reference
    }

    /// Threads and values of one instruction, as the reference counts them.
    #[must_use]
    pub fn counts(&self) -> (i64, i64) {
        let size = |mode| self.reference.mode(mode).map_or(1, |layout| layout.size());
        (size(0), size(1))
    }

    /// Where the facts come from: a CUTLASS header, and an instruction of the PTX ISA.
    #[must_use]
    pub fn source(&self) -> (&'static str, &'static str) {
        self.source
    }
}

fn wrong_width(name: &str, value_bits: i64, bits: i64) -> LayoutError {
    LayoutError::new("Copy_Atom", Class::Argument)
        .found(format!("{name} with values of {value_bits} bits"))
        .required(format!("a width that divides the {bits} bits of one thread, and what the instruction moves at once"))
        .because("CopyOperation is not valid for Src of ValType.")
        .help("recast the tensors to the width of the instruction")
}
