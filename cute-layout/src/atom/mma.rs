//! [`MmaAtom`]: one matrix multiply-accumulate instruction, and which thread holds which element.

use std::fmt;

use super::mma_table::{FAMILIES, Family, GMMA_C, ROWS, Row};
use crate::layout::{Class, Layout, LayoutError};

/// The type of a value of an operand, with the letters that CuTe's atom names use.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[allow(clippy::upper_case_acronyms)]
pub enum ValueType {
    /// IEEE 754 binary16.
    F16,
    /// bfloat16.
    BF16,
    /// TensorFloat-32: 19 bits used, held in 32.
    TF32,
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary64.
    F64,
    /// OCP FP8 E4M3.
    E4M3,
    /// OCP FP8 E5M2.
    E5M2,
    /// Signed 8-bit integer.
    S8,
    /// Unsigned 8-bit integer.
    U8,
    /// Signed 32-bit integer.
    S32,
}

impl ValueType {
    /// Bits of one value as it lies in memory or in a register.
    #[must_use]
    pub fn bits(self) -> i64 {
        match self {
            ValueType::E4M3 | ValueType::E5M2 | ValueType::S8 | ValueType::U8 => 8,
            ValueType::F16 | ValueType::BF16 => 16,
            ValueType::TF32 | ValueType::F32 | ValueType::S32 => 32,
            ValueType::F64 => 64,
        }
    }
}

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// An operand of `C += A * B` with A as M x K, B as N x K and C as M x N.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Operand {
    /// The M x K operand.
    A,
    /// The N x K operand: CuTe writes B with N first.
    B,
    /// The M x N accumulator.
    C,
}

impl Operand {
    /// Every operand.
    pub const ALL: [Operand; 3] = [Operand::A, Operand::B, Operand::C];

    /// The modes (0, 1, 2 for M, N, K) of the rows and of the columns of the operand's tile.
    #[must_use]
    pub fn modes(self) -> (usize, usize) {
        match self {
            Operand::A => (0, 2),
            Operand::B => (1, 2),
            Operand::C => (0, 1),
        }
    }
}

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// One MMA instruction: its shape, its threads and the TV layouts of its operands (CuTe's `MMA_Atom` and `MMA_Traits`).
///
/// A TV layout maps `(thread, value)` to the *column-major index in the operand's tile*: M x K for A, N x K for B (N
/// first), M x N for C. It says nothing about memory. An operand that WGMMA reads from shared memory has a layout whose
/// thread mode has stride 0: every thread names the whole tile, through a descriptor.
///
/// ```
/// use cute_layout::atom::{MmaAtom, Operand};
/// let atom = MmaAtom::named("SM80_16x8x16_F32F16F16F32_TN")?;
/// assert_eq!(atom.shape_mnk(), [16, 8, 16]);
/// assert_eq!(atom.layout_tv(Operand::A).to_string(), "((4,8),(2,2,2)):((32,1),(16,8,128))");
/// // Value 3 of thread 5 owns the element at 5 % 4 * 32 + 5 / 4 + 16 + 8 = 57: row 9, column 3 of the 16 x 16 tile.
/// assert_eq!(atom.layout_tv(Operand::A).at(5 + 32 * 3)?, 9 + 16 * 3);
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MmaAtom {
    name: String,
    shape: [i64; 3],
    types: [ValueType; 4],
    thr_id: Layout,
    layouts: [Layout; 3],
    source: (&'static str, &'static str),
}

impl MmaAtom {
    /// The atom that CuTe calls by this name: `SM80_16x8x16_F32F16F16F32_TN`, `SM90_64x128x16_F32F16F16_SS`,
    /// `UniversalFMA<float>`. For WGMMA the N is any that the instruction has.
    ///
    /// *Law.* The TV layouts are those of `MMA_Traits`: each element of a tile belongs to a thread and a value.
    ///
    /// *Source.* `cute/atom/mma_traits.hpp`; the traits' header is [`MmaAtom::source`].
    ///
    /// # Errors
    /// No such atom is known here; the error lists those that are near.
    ///
    /// ```
    /// use cute_layout::atom::MmaAtom;
    /// assert_eq!(MmaAtom::named("SM90_64x96x16_F32F16F16_SS")?.shape_mnk(), [64, 96, 16]);
    /// assert!(MmaAtom::named("SM90_64x100x16_F32F16F16_SS").is_err());
    /// # Ok::<(), cute_layout::layout::LayoutError>(())
    /// ```
    pub fn named(name: &str) -> Result<MmaAtom, LayoutError> {
        MmaAtom::find(name).unwrap_or_else(|| Err(unknown("MMA_Atom", name, MmaAtom::names())))
    }

    /// The atom of this name, or `None` where the tables do not have it.
    pub(super) fn find(name: &str) -> Option<Result<MmaAtom, LayoutError>> {
        if let Some(row) = ROWS.iter().find(|row| row.name == name) {
            return Some(MmaAtom::from_row(row));
        }
        FAMILIES.iter().find_map(|family| Some(MmaAtom::from_family(family, name, family.extent_n(name)?)))
    }

    /// The names of the atoms in the table; of each WGMMA family the one with N = 64.
    pub fn names() -> impl Iterator<Item = String> {
        let fixed = ROWS.iter().map(|row| row.name.to_owned());
        fixed.chain(FAMILIES.iter().map(|family| family.name(64)))
    }

    fn from_row(row: &Row) -> Result<MmaAtom, LayoutError> {
        Ok(MmaAtom {
            name: row.name.to_owned(),
            shape: row.shape,
            types: row.types,
            thr_id: row.thr_id.parse()?,
            layouts: [row.a.parse()?, row.b.parse()?, row.c.parse()?],
            source: row.source,
        })
    }

    fn from_family(family: &Family, name: &str, n: i64) -> Result<MmaAtom, LayoutError> {
        let [d, a, b] = family.types;
        // Operands in shared memory: each of the 128 threads names the whole tile.
        let shared = |rows: i64| format!("(128,({rows},{})):(0,(1,{rows}))", family.k).parse();
        Ok(MmaAtom {
            name: name.to_owned(),
            shape: [64, n, family.k],
            types: [d, a, b, d],
            thr_id: "128:1".parse()?,
            layouts: [
                match family.registers_a {
                    Some(text) => text.parse()?,
                    None => shared(64)?,
                },
                shared(n)?,
                format!("({},(2,2,{})):({})", GMMA_C.0, n / 8, GMMA_C.1).parse()?,
            ],
            source: family.source,
        })
    }

    /// CuTe's name of the operation.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// M, N and K of the instruction, in elements.
    #[must_use]
    pub fn shape_mnk(&self) -> [i64; 3] {
        self.shape
    }

    /// From the logical threads of the instruction to thread indices in the warp or warpgroup (CuTe's `ThrID`). It is
    /// not the identity for Volta, whose quadpair is threads 0-3 and 16-19.
    #[must_use]
    pub fn thr_id(&self) -> &Layout {
        &self.thr_id
    }

    /// `(thread, value)` to the column-major index in the operand's tile (CuTe's `LayoutA_TV` and the others).
    #[must_use]
    pub fn layout_tv(&self, operand: Operand) -> &Layout {
        match operand {
            Operand::A => &self.layouts[0],
            Operand::B => &self.layouts[1],
            Operand::C => &self.layouts[2],
        }
    }

    /// The type of the operand's values; the accumulator is read in it too.
    #[must_use]
    pub fn value_type(&self, operand: Operand) -> ValueType {
        match operand {
            Operand::A => self.types[1],
            Operand::B => self.types[2],
            Operand::C => self.types[3],
        }
    }

    /// The type of the result D.
    #[must_use]
    pub fn result_type(&self) -> ValueType {
        self.types[0]
    }

    /// Rows and columns of the operand's tile.
    #[must_use]
    pub fn tile(&self, operand: Operand) -> (i64, i64) {
        let (rows, columns) = operand.modes();
        (self.shape[rows], self.shape[columns])
    }

    /// The headers that define the atom where `cute/tensor.hpp` does not: WGMMA of other extents N than the usual ones. They come after
    /// `cute/tensor.hpp`. CuTe's macro for them would include the sparse atoms too, and nvcc would take half a minute longer.
    ///
    /// *Law.* They are named for exactly the atoms of the headers whose names end in `_ext`.
    ///
    /// *Source.* `cute/arch/mma_sm90_gmma_ext.hpp`, `cute/atom/mma_traits_sm90_gmma_ext.hpp`.
    ///
    /// ```
    /// use cute_layout::atom::MmaAtom;
    /// assert!(MmaAtom::named("SM90_64x256x16_F32F16F16_SS")?.headers().is_empty());
    /// let of_224 = MmaAtom::named("SM90_64x224x16_F32F16F16_SS")?;
    /// assert_eq!(of_224.headers(), ["cute/arch/mma_sm90_gmma_ext.hpp", "cute/atom/mma_traits_sm90_gmma_ext.hpp"]);
    /// # Ok::<(), cute_layout::layout::LayoutError>(())
    /// ```
    #[must_use]
    pub fn headers(&self) -> &'static [&'static str] {
        let [_, n, _] = self.shape;
        let is_extended = self.name.starts_with("SM90_64x") && !Family::USUAL_N.contains(&n);
        if is_extended { &["cute/arch/mma_sm90_gmma_ext.hpp", "cute/atom/mma_traits_sm90_gmma_ext.hpp"] } else { &[] }
    }

    /// Where the facts come from: a CUTLASS header, and a section of the PTX ISA (empty where there is none).
    #[must_use]
    pub fn source(&self) -> (&'static str, &'static str) {
        self.source
    }
}

/// An error for a name that the tables do not have, with the names nearest to it.
pub(super) fn unknown(what: &'static str, name: &str, known: impl Iterator<Item = String>) -> LayoutError {
    let mut all: Vec<(usize, String)> =
        known.map(|candidate| (strsim::osa_distance(name, &candidate), candidate)).collect();
    all.sort();
    let near: Vec<String> = all.into_iter().take(3).map(|(_, candidate)| candidate).collect();
    LayoutError::new(what, Class::Argument)
        .found(format!("`{name}`"))
        .required("an atom of the table")
        .because("its layouts are facts about an instruction and cannot be guessed from a name")
        .help(format!("near: {}", near.join(", ")))
}
