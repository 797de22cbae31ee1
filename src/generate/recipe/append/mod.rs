//! `append`: new keys and values go to the pages of their sequences, keys rotated by their positions.

mod decide;
#[cfg(feature = "emit")]
mod emit;
mod launch;
mod reference;

use crate::arch::Targets;
use crate::diagnostic::PlanError;
use crate::dtype::DType;
use crate::plan::Plan;
use crate::recipe::field::{as_displayed, recipe};
use crate::recipe::{OfTensors, Recipe};
use crate::settings::{Setting, named};

named! {
    /// The elements of a row that are rotated together.
    #[derive(Default)]
    Pairs, "pairs":
    /// Element i of the first half, and element i of the second.
    #[default]
    Half = "half",
    /// Elements 2i and 2i + 1.
    Interleaved = "interleaved",
}

as_displayed!(Pairs);

recipe! {
    /// Writes the last SQ keys and values of each sequence to its pages: row i of NewK `(B,SQ,HK,D)` and NewV `(B,SQ,HK,DV)` has the
    /// position `Lengths(b) - SQ + i`. Lengths count the new keys, so `attention` with `paged=true` reads the same Table and Lengths.
    ///
    /// The first `rotary` elements of a key are rotated by Cos and Sin `(POSITIONS,rotary/2)` at its position; a position past the last
    /// counts as the last. With `queries` Q `(B,SQ,HQ,D)` is rotated to Rotated, which may be Q's own memory.
    ///
    /// With `varlen` sequences have any numbers of new tokens, one after the other: NewK is `(TQ,HK,D)`. StartsQ says where each begins,
    /// as `attention` reads it. The last row of a sequence has its last position. Starts that go back, or past the end, are taken for the
    /// furthest so far, and for the end. Rows ahead of the first start and behind the last go to no page, and their Rotated is 0.
    ///
    /// With `dtype_kv=e4m3` pages hold K and V of 8 bits, divided by ScaleK and ScaleV `(HK)` in f32, as `attention` multiplies them.
    ///
    /// A row whose position is negative or past the table, or whose entry names no page, is not written. All else in K and V stays as it
    /// is. A page that new keys go to belongs to one sequence.
    ///
    /// ```
    /// use cutemplate::arch::Targets;
    /// use cutemplate::recipe::{Append, Recipe};
    ///
    /// let plan = Append { queries: true, ..Append::default() }.plan(&Targets::default())?;
    /// let names: Vec<&str> = plan.operands().iter().map(|operand| operand.name).collect();
    /// assert_eq!(names, ["NewK", "NewV", "Q", "Cos", "Sin", "Table", "Lengths", "K", "V", "Rotated"]);
    /// # Ok::<(), cutemplate::diagnostic::PlanError>(())
    /// ```
    pub struct Append |this| {
        /// type of keys, values and queries: f16, bf16
        dtype: DType, "bf16";
        /// type of K and V; auto: that of the new ones; e4m3: with ScaleK and ScaleV, (HK) in f32, which those of a head are divided by
        dtype_kv: Option<DType>, "e4m3", if this.dtype_kv.is_some();
        /// elements of a key: 8 to 256, a multiple of 8
        head: u32, "128";
        /// elements of a value: 8 to 256, a multiple of 8; auto: as many as head
        value: Option<u32>, "64", if this.value.is_some();
        /// elements of a key that are rotated, ahead of the others: a multiple of 16, 0 for none; auto: all
        rotary: Option<u32>, "64", if this.rotary.is_some();
        /// which elements are rotated together: half, interleaved
        pairs: Pairs, "interleaved", if this.pairs != Pairs::Half;
        /// whether Q (B,SQ,HQ,D) is rotated, too, to Rotated: true, false
        queries: bool, "true", if this.queries;
        /// whether new tokens of sequences lie one after the other: NewK (TQ,HK,D), NewV (TQ,HK,DV), Q (TQ,HQ,D). StartsQ, (STARTS) in
        /// i32, says where each of B sequences begins, and where the last one ends: true, false
        varlen: bool, "true", if this.varlen;
    }
}

impl Default for Append {
    /// Keys of 128 f16, rotated as a whole.
    fn default() -> Self {
        Self {
            dtype: DType::F16,
            dtype_kv: None,
            head: 128,
            value: None,
            rotary: None,
            pairs: Pairs::Half,
            queries: false,
            varlen: false,
        }
    }
}

impl Append {
    /// The type of K and V.
    fn dtype_kv(&self) -> DType {
        self.dtype_kv.unwrap_or(self.dtype)
    }

    /// Whether K and V have 8 bits, and scales.
    fn is_narrow(&self) -> bool {
        self.dtype_kv() == DType::E4m3
    }

    /// Elements of a value.
    fn value(&self) -> u32 {
        self.value.unwrap_or(self.head)
    }

    /// Elements of a key that are rotated.
    fn rotary(&self) -> u32 {
        self.rotary.unwrap_or(self.head)
    }
}

impl OfTensors for Append {}

impl Recipe for Append {
    const FAMILY: &'static str = "append";
    const RUST_TYPE: &'static str = "Append";
    const SUMMARY: &'static str = "new keys and values to the pages of their sequences, with rotary embedding";
    const SETTINGS: &'static [Setting] = SETTINGS;
    const CATALOGUE: &'static [&'static str] = &[
        "dtype=bf16\nvalue=64\nrotary=96\nqueries=true",
        "dtype=bf16\ndtype_kv=e4m3\nhead=64\nrotary=32\nqueries=true\nvarlen=true",
    ];
    const PROBLEM: &'static [i64] = &[1, 4096, 256, 8, 256, 16, 8192];
    const EXAMPLES: &'static [(&'static str, &'static str)] = &[("run", "--set rotary=64 --problem 1x3x2x4x5x16x40")];

    fn plan_as(&self, name: &str, targets: &Targets) -> Result<Plan, PlanError> {
        decide::plan_as(self, name, targets)
    }

    fn default_name(&self) -> String {
        let narrow = if self.is_narrow() { "_e4m3" } else { "" };
        let mut name = format!("{}_{}{narrow}_{}", Self::FAMILY, self.dtype, self.head);
        if let Some(value) = self.value.filter(|value| *value != self.head) {
            name += &format!("x{value}");
        }
        if let Some(rotary) = self.rotary.filter(|rotary| *rotary != self.head) {
            name += &format!("_rotary{rotary}");
        }
        if self.pairs == Pairs::Interleaved {
            name += "_interleaved";
        }
        if self.varlen {
            name += "_varlen";
        }
        name + if self.queries { "_queries" } else { "" }
    }
}
