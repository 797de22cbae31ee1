//! `elementwise_add`: C = A + B with a thread-value layout, as in NVIDIA's CuTe DSL notebook `elementwise_add.ipynb`. A name for
//! settings of `elementwise_apply`, whose checks, text and launch are its own.

use crate::arch::Targets;
use crate::diagnostic::PlanError;
use crate::dtype::{DType, Element};
use crate::expr::Function;
use crate::layout::Layout;
use crate::plan::Plan;
use crate::recipe::elementwise_apply::{self, ElementwiseApply, Variant};
use crate::recipe::field::recipe;
use crate::recipe::{OfTensors, Raster, Recipe};
use crate::settings::Setting;
use crate::units::Bytes;
use crate::view::{AnyView, Args, Space, View, ViewMut};

recipe! {
    /// C = A + B on row-major matrices `(M,N):(ld,1)` of any size and any leading dimension.
    ///
    /// Threads take neighbouring vectors of `vector` bytes, `unroll` of them in flight. With `thr_layout`, `val_layout_bytes` or
    /// `raster`, each block takes one tile of C instead, and the thread-value layout gives the threads their vectors in it.
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
        /// thread layout (ThrM,ThrN) -> tid of a tile; auto for none, or `(4,64):(64,1)` with `val` or `raster`
        thr_layout = "thr": Option<Layout>, "(4,64):(64,1)";
        /// value layout of one thread in bytes, (ValM,ValBytes) -> vid, recast to the element type; auto for none, or
        /// `(1,16):(16,1)` with `thr` or `raster`
        val_layout_bytes = "val": Option<Layout>, "(1,16):(16,1)";
        /// bytes of one load or store: 2, 4, 8 or 16
        vector: Bytes, "16";
        /// vectors of each input in flight per thread, 0 to choose
        unroll: u32, "4";
        /// blocks walk over the tiles along `n` (rows) or `m` (columns); auto for no tiles, or `n` with `thr` or `val`
        raster: Option<Raster>, "n";
    }
}

impl Default for ElementwiseAdd {
    /// f16, 16-byte vectors.
    fn default() -> Self {
        let vector = Bytes(16);
        Self { dtype: DType::F16, thr_layout: None, val_layout_bytes: None, vector, unroll: 0, raster: None }
    }
}

impl ElementwiseAdd {
    /// The same kernel as a recipe of `elementwise_apply`, whose output is called Y.
    ///
    /// ```
    /// use cutemplate::recipe::{ElementwiseAdd, Recipe};
    ///
    /// assert!(ElementwiseAdd::default().apply().settings().to_string().contains("variant=vectorized"));
    /// let tiled = ElementwiseAdd { thr_layout: Some("(8,32):(32,1)".parse()?), ..Default::default() };
    /// assert!(tiled.apply().settings().to_string().contains("variant=remapped"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn apply(&self) -> ElementwiseApply {
        let apply = ElementwiseApply::new(Function::binary(|a, b| a + b), self.dtype);
        ElementwiseApply {
            variant: match (self.raster, &self.thr_layout, &self.val_layout_bytes) {
                (None, None, None) => Variant::Vectorized,
                (Some(Raster::AlongM), ..) => Variant::Tv,
                _ => Variant::Remapped,
            },
            vector: self.vector,
            unroll: self.unroll,
            thr_layout: self.thr_layout.clone().unwrap_or(apply.thr_layout),
            val_layout_bytes: self.val_layout_bytes.clone().unwrap_or(apply.val_layout_bytes),
            ..apply
        }
    }
}

impl OfTensors for ElementwiseAdd {}

impl Recipe for ElementwiseAdd {
    const FAMILY: &'static str = "elementwise_add";
    const RUST_TYPE: &'static str = "ElementwiseAdd";
    const SUMMARY: &'static str = "C = A + B, elementwise, row-major matrices of any size";
    const SETTINGS: &'static [Setting] = SETTINGS;
    /// The default for each type.
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
