//! `sgemm`: D = epilogue(A @ B, C, ..) in f32, on every rung of the ladder of Simon Boehm's "How to Optimize a CUDA Matmul
//! Kernel", written with CuTe as in "Optimizing a MatMul with CuTe C++".

pub mod choose;
mod decide;
#[cfg(feature = "emit")]
mod emit;
mod facts;
mod launch;
mod spec;
mod tilings;

pub use choose::Expected;
pub use spec::{SmemLayout, Variant};

use crate::arch::Targets;
use crate::diagnostic::PlanError;
use crate::expr::{Compute, Function};
use crate::model::Machine;
use crate::plan::{ConflictLevel, Groups, Plan};
use crate::recipe::field::{as_displayed, recipe};
use crate::recipe::product::{Epilogue, Extents, Gives, Major, Problem, ProductArgs, Record, Takes};
use crate::recipe::reader::Reader;
use crate::recipe::{OfTensors, Recipe, TensorSpec};
use crate::settings::Setting;

recipe! {
    /// `D = epilogue(A @ B, C, ..)`: f32, A `(M,K)`, B `(K,N)`, D row-major `(M,N)`, of any extents; with `batched`, all have a
    /// last mode L.
    ///
    /// The epilogue is a traced function of the accumulator, of the element of C, and of auxiliary tensors, in this
    /// order. A text names them in front, `|a, c, bias| a + c + bias`, or calls them `a`, `b`, `c`, ..; the default is
    /// `alpha * a + beta * c`. If C is only ever multiplied by a run-time scalar, a launch with that scalar 0 does not
    /// read C. If the accumulator is, A and B are not read.
    ///
    /// ```
    /// use cutemplate::arch::Targets;
    /// use cutemplate::recipe::sgemm::{Sgemm, Variant};
    /// use cutemplate::recipe::Recipe;
    ///
    /// let seed = Sgemm::rung(Variant::Block2d);
    /// let plan = seed.plan(&Targets::default())?;
    /// assert_eq!((plan.threads(), plan.operands().len()), (64, 4));
    /// # Ok::<(), cutemplate::diagnostic::PlanError>(())
    /// ```
    pub struct Sgemm |this| {
        /// the function of the accumulator, of C's element and of auxiliary elements, in this order; they are a, b, c, .. unless it names them
        epilogue: Function, "|a, c, bias; alpha, beta| relu(alpha * a + beta * c + bias)";
        /// A, (M,K), is contiguous along its rows or columns: row, col
        a: Major, "col";
        /// B, (K,N), is contiguous along its rows or columns: row, col
        b: Major, "col";
        /// type and strides of each auxiliary tensor, (M,N): stride 0 broadcasts a row or column
        aux: Vec<TensorSpec>, "f32:(0,1)", if !this.aux.is_empty();
        /// whether all tensors have a last mode L, along which a read tensor may have stride 0: true, false
        batched: bool, "true";
        /// the rung: naive, coalesced, smem_tiled, block_1d, block_2d, vectorized, warp_tiled, pipelined
        variant: Variant, "block_2d";
        /// tile of a block in elements, BMxBNxBK
        tile: Extents<3>, "128x128x16";
        /// elements of D that one thread computes, TMxTN
        thread_tile = "thread": Extents<2>, "8x8";
        /// threads of a warp along M and N, for warp_tiled and pipelined
        warp: Extents<2>, "4x8", if this.variant.has_mma();
        /// bytes of one load of global memory, 16 or 4
        vector: u32, "16", if this.variant.has_mma();
        /// stages: tiles in shared memory at a time, for pipelined
        stages: u32, "3", if this.variant == Variant::Pipelined;
        /// split-K: parts of K, each with its own blocks, for pipelined
        split_k: u32, "4", if this.variant == Variant::Pipelined;
        /// blocks that run at a time, for pipelined. Tiles that do not fill such a wave are split along K, so that its
        /// blocks end together; a second kernel adds their sums in order. 0: no split. An H200 runs `min_blocks` on
        /// each of 132 multiprocessors
        wave: u32, "264", if this.variant == Variant::Pipelined;
        /// keep loads of shared memory before the products by __syncwarp, for pipelined: true, false
        warp_sync: bool, "true", if this.variant == Variant::Pipelined;
        /// tile of A in shared memory: auto, `pad<elements>`, or a swizzle
        smem_a: SmemLayout, "pad4";
        /// tile of B in shared memory: auto, `pad<elements>`, or a swizzle
        smem_b: SmemLayout, "Sw<2,3,3>";
        /// bank conflicts are an error, a warning, or nothing: deny, warn, allow
        conflicts: ConflictLevel, "warn";
        /// the least resident blocks per multiprocessor; 0 for no bound
        min_blocks: u32, "2";
    }
}

as_displayed!(Variant, SmemLayout);

/// `alpha * a + beta * b`.
fn linear() -> Function {
    let traced = Function::nary(2, |t, x| [t.scalar("alpha") * x[0] + t.scalar("beta") * x[1]]);
    traced.unwrap_or_else(|defect| unreachable!("two inputs and two scalars are a function: {defect}"))
}

impl Sgemm {
    /// A rung of the ladder as it is usually built: tiles of the texts that the ladder is from.
    pub fn rung(variant: Variant) -> Self {
        let (tile, thread_tile) = match variant {
            Variant::Naive | Variant::Coalesced => ([32, 32, 1], [1, 1]),
            Variant::SmemTiled => ([32, 32, 32], [1, 1]),
            Variant::Block1d => ([64, 64, 8], [8, 1]),
            Variant::Block2d => ([64, 64, 8], [8, 8]),
            Variant::Vectorized | Variant::WarpTiled => ([128, 128, 8], [8, 8]),
            Variant::Pipelined => ([64, 256, 32], [8, 8]),
        };
        let smem = if variant.has_mma() { SmemLayout::Auto } else { SmemLayout::Pad(0) };
        Self {
            epilogue: linear(),
            a: Major::Row,
            b: Major::Row,
            aux: Vec::new(),
            batched: false,
            variant,
            tile: Extents(tile),
            thread_tile: Extents(thread_tile),
            warp: Extents([4, 8]),
            stages: if variant == Variant::Pipelined { 2 } else { 1 },
            vector: 16,
            smem_a: smem,
            smem_b: smem,
            conflicts: match variant {
                Variant::WarpTiled | Variant::Pipelined => ConflictLevel::Deny,
                _ => ConflictLevel::Warn,
            },
            split_k: 1,
            wave: 0,
            min_blocks: if variant.has_mma() { 2 } else { 0 },
            warp_sync: false,
        }
    }

    fn epilogue(&self) -> Epilogue<'_> {
        let Sgemm { epilogue: function, aux, batched, .. } = self;
        let (groups, outputs, compute, others) = (Groups::None, 1, Compute::F32, &[]);
        Epilogue { function, aux, batched: *batched, groups, outputs, sums: 1, compute, others }
    }

    /// The same with another epilogue and its auxiliary tensors.
    #[must_use]
    pub fn with_epilogue(self, epilogue: Function, aux: Vec<TensorSpec>) -> Self {
        Self { epilogue, aux, ..self }
    }
}

impl Default for Sgemm {
    /// The top rung.
    fn default() -> Self {
        Self::rung(Variant::Pipelined)
    }
}

/// The arguments of one launch: A, B, C, auxiliary tensors, D, and the values of the run-time scalars.
pub type SgemmArgs<'a, S> = ProductArgs<'a, Sgemm, S>;

impl OfTensors for Sgemm {}

impl Takes<f32> for Sgemm {}

impl Gives<f32> for Sgemm {}

impl Recipe for Sgemm {
    const FAMILY: &'static str = "sgemm";
    const RUST_TYPE: &'static str = "Sgemm";
    const SUMMARY: &'static str = "D = epilogue(A @ B, C, ..) in f32, any extents, on every rung of the ladder";
    const SETTINGS: &'static [Setting] = SETTINGS;
    /// Every rung, and what differs in their text.
    const CATALOGUE: &'static [&'static str] = &[
        "variant=naive",
        "variant=coalesced",
        "variant=smem_tiled",
        "variant=block_1d",
        "variant=block_2d",
        "variant=vectorized",
        "variant=warp_tiled",
        "variant=pipelined",
        "variant=pipelined\na=col\nb=col\nbatched=true\ntile=64x64x16\nthread=4x4\nsplit_k=4",
        "variant=pipelined\nepilogue=|a, b, c; alpha| gelu(alpha * a + c)\naux=f32:(0,1)\ntile=128x128x16\nstages=3\nmin_blocks=1",
        "variant=pipelined\nbatched=true\ntile=64x64x32\nthread=8x4\nconflicts=warn\nwave=528\nmin_blocks=4",
    ];
    const PROBLEM: &'static [i64] = &[4096, 4096, 4096];
    const RUNGS: &'static [&'static str] = Variant::NAMES;
    const EXAMPLES: &'static [(&'static str, &'static str)] = &[
        ("run", "--problem 130x67x45 --scalar alpha=0.5 --scalar beta=2"),
        ("bench", "--ladder --problem 4096x4096x4096 --arch sm_90a --graph"),
        ("bench", "--variant pipelined --set tile=128x128x16 --fill integers"),
        ("tune", "--problem 4096x4096x4096 --arch sm_90a --record record.txt"),
    ];

    fn plan_as(&self, name: &str, targets: &Targets) -> Result<Plan, PlanError> {
        decide::plan(self, name, targets)
    }

    fn default_name(&self) -> String {
        let major = |major: Major| if major == Major::Row { "t" } else { "n" };
        // BLAS's words, for the column-major world: t is transposed, so row-major.
        let usual = Self::rung(self.variant);
        let rung = format!("{}_{}_{}{}", Self::FAMILY, self.variant, major(self.a), major(self.b));
        let told = [
            (self.tile != usual.tile, format!("_{}", self.tile)),
            (self.split_k != usual.split_k, format!("_split{}", self.split_k)),
            (self.wave != usual.wave, format!("_wave{}", self.wave)),
            (self.batched, "_batched".to_owned()),
        ];
        told.into_iter().filter(|(differs, _)| *differs).fold(rung, |name, (_, choice)| name + &choice)
    }

    fn base(reader: &mut Reader<'_>) -> Self {
        let mut variant = Variant::default();
        reader.read("variant", &mut variant);
        Self::rung(variant)
    }

    fn candidates(problem: &Problem, machine: &Machine) -> Vec<Self> {
        choose::candidates(problem, machine)
    }

    fn expected(problem: &Problem, machine: &Machine) -> Vec<(Self, f64)> {
        choose::expect(problem, machine).into_iter().map(|one| (one.recipe.clone(), one.seconds())).collect()
    }

    const DOUBT: f64 = 1.25;

    /// Measurements on an NVIDIA H200, with nvcc 13.0.
    fn record() -> Option<Record> {
        include_str!("h200.txt").parse().ok()
    }
}

// The chapter's examples are tests.
#[cfg(doctest)]
#[doc = include_str!("../../../../docs/sgemm.md")]
struct TheSgemmLadder;
