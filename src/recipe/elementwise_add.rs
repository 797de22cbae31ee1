//! `elementwise_add`: C = A + B with a thread-value layout, as in NVIDIA's CuTe DSL notebook `elementwise_add.ipynb`. A name for
//! settings of `elementwise_apply`, whose checks, text and launch are its own.

use crate::arch::Targets;
use crate::diagnostic::PlanError;
use crate::dtype::{DType, Element};
use crate::expr::Function;
use crate::layout::Layout;
use crate::plan::Plan;
use crate::recipe::Recipe;
use crate::recipe::elementwise_apply::{self, ElementwiseApply, Variant};
use crate::recipe::field::{as_displayed, recipe};
use crate::settings::{Setting, named};
use crate::units::Bytes;
use crate::view::{AnyView, Args, Space, View, ViewMut};

recipe! {
    /// C = A + B on row-major matrices `(M,N):(ld,1)` of any size and any leading dimension.
    ///
    /// Each block takes one tile of C. Within it, `thr_layout` and the value layout give the thread-value layout, so every
    /// thread moves whole vectors of `vector` bytes, `unroll` of them in flight.
    ///
    /// ```
    /// use cutemplate::arch::Targets;
    /// use cutemplate::dtype::DType;
    /// use cutemplate::recipe::{ElementwiseAdd, Recipe};
    ///
    /// let plan = ElementwiseAdd { dtype: DType::F16, ..Default::default() }.plan(&Targets::default())?;
    /// assert_eq!(plan.threads(), 256);
    /// # Ok::<(), cutemplate::diagnostic::PlanError>(())
    /// ```
    pub struct ElementwiseAdd |this| {
        /// element type of A, B and C
        dtype: DType, "bf16";
        /// thread layout (ThrM,ThrN) -> tid
        thr_layout = "thr": Layout, "(4,64):(64,1)";
        /// value layout of one thread in bytes, (ValM,ValBytes) -> vid, recast to the element type
        val_layout_bytes = "val": Layout, "(16,16):(16,1)";
        /// bytes of one load or store: 2, 4, 8 or 16
        vector: Bytes, "16";
        /// vectors of each input in flight per thread, 0 to choose
        unroll: u32, "4";
        /// blocks walk along `n` (rows) or `m` (columns)
        raster: Raster, "n";
    }
}

as_displayed!(Raster);

named! {
    /// The order in which blocks walk over the tiles of the output.
    Raster, "mode that blocks walk along":
    /// Neighbouring blocks take neighbouring tiles of a row: long runs of contiguous memory for row-major matrices.
    AlongN = "n",
    /// Neighbouring blocks take neighbouring tiles of a column.
    AlongM = "m",
}

impl Default for ElementwiseAdd {
    /// The notebook's choice: f16, threads `(4,64):(64,1)`, values `(16,16):(16,1)` bytes, 16-byte vectors, blocks along N.
    fn default() -> Self {
        let ElementwiseApply { thr_layout, val_layout_bytes, .. } = ElementwiseApply::default();
        Self { dtype: DType::F16, thr_layout, val_layout_bytes, vector: Bytes(16), unroll: 0, raster: Raster::AlongN }
    }
}

impl ElementwiseAdd {
    /// The same kernel as a recipe of `elementwise_apply`, whose output is called Y.
    ///
    /// ```
    /// use cutemplate::recipe::{ElementwiseAdd, Recipe};
    ///
    /// let apply = ElementwiseAdd::default().apply();
    /// assert!(apply.settings().to_string().contains("variant=remapped"));
    /// ```
    pub fn apply(&self) -> ElementwiseApply {
        ElementwiseApply {
            variant: match self.raster {
                Raster::AlongN => Variant::Remapped,
                Raster::AlongM => Variant::Tv,
            },
            vector: self.vector,
            unroll: self.unroll,
            thr_layout: self.thr_layout.clone(),
            val_layout_bytes: self.val_layout_bytes.clone(),
            ..ElementwiseApply::new(Function::binary(|a, b| a + b), self.dtype)
        }
    }
}

impl Recipe for ElementwiseAdd {
    const FAMILY: &'static str = "elementwise_add";
    const RUST_TYPE: &'static str = "ElementwiseAdd";
    const SUMMARY: &'static str = "C = A + B, elementwise, row-major matrices of any size";
    const SETTINGS: &'static [Setting] = SETTINGS;
    /// The notebook's choice for each type.
    const CATALOGUE: &'static [&'static str] = &["dtype=f32", "dtype=f16", "dtype=bf16"];
    const PROBLEM: &'static [i64] = &[16384, 8192];
    const EXAMPLES: &'static [(&'static str, &'static str)] = &[
        ("check", ""),
        ("check", "--set dtype=f32 --set 'thr=(8,32):(32,1)' --arch sm_90a"),
        ("emit", ""),
        ("emit", "--out kernels"),
        ("run", "--problem 1023x511"),
        ("run", "--set dtype=f32 --input a.npy --input b.npy --output c.npy"),
        ("run", "--problem 64x200 --ld 256 --mode races"),
        ("bench", "--set dtype=bf16 --problem 16384x8192"),
    ];

    fn plan_as(&self, name: &str, targets: &Targets) -> Result<Plan, PlanError> {
        elementwise_apply::plan_as(&self.apply(), self, "C", name, targets)
    }

    fn default_name(&self) -> String {
        format!("{}_{}", Self::FAMILY, self.dtype)
    }
}

/// The arguments of one launch: C = A + B, all `(M,N)`.
#[derive(Debug)]
pub struct ElementwiseAddArgs<'a, T: Element, S: Space> {
    /// A, `(M,N):(lda,1)`.
    pub a: View<'a, T, S>,
    /// B, `(M,N):(ldb,1)`.
    pub b: View<'a, T, S>,
    /// C, `(M,N):(ldc,1)`.
    pub c: ViewMut<'a, T, S>,
}

impl<T: Element, S: Space> Args<ElementwiseAdd, S> for ElementwiseAddArgs<'_, T, S> {
    fn views(&mut self) -> Vec<AnyView<'_, S>> {
        vec![self.a.erase(), self.b.erase(), self.c.erase()]
    }
}
