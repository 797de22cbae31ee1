//! `sgemm`: D = epilogue(A @ B, C, ..) in f32, on every rung of the ladder of Simon Boehm's "How to Optimize a CUDA Matmul
//! Kernel", written with CuTe as in "Optimizing a MatMul with CuTe C++".

mod args;
mod budget;
pub mod choose;
mod copy;
mod decide;
mod emit;
mod epilogue;
mod launch;
mod predict;
mod record;
mod spec;
mod wave;

use core::fmt;

pub use args::SgemmArgs;
pub use choose::Expected;
pub use record::{Measured, Problem, Record};
pub use spec::{Extents, Major, SmemLayout, UnknownWord, Variant};

use crate::arch::Targets;
use crate::expr::{ExprError, Function};
use crate::plan::{ConflictLevel, Plan, PlanError};
use crate::recipe::settings::Reader;
use crate::recipe::tensor_spec::SpecList;
use crate::recipe::{Recipe, Setting, Settings, TensorSpec};

/// `D = epilogue(A @ B, C, ..)`: f32, A `(M,K)`, B `(K,N)`, D row-major `(M,N)`, of any extents; with `batched`, all have a
/// last mode L.
///
/// The epilogue is a traced function of the accumulator `a`, of the element `b` of C, and of auxiliary tensors `c`, `d`, ..;
/// without one it is `alpha * a + beta * b`. Where C is only ever multiplied by a run-time scalar, a launch with that scalar 0
/// does not read C; where the accumulator is, A and B are not read.
///
/// ```
/// use cutemplate::arch::Targets;
/// use cutemplate::recipe::sgemm::{Sgemm, Variant};
/// use cutemplate::recipe::Recipe;
///
/// let seed = Sgemm::rung(Variant::Block2d);
/// let plan = seed.plan(&Targets::default())?;
/// assert_eq!((plan.threads(), plan.operands().len()), (64, 4));
/// # Ok::<(), cutemplate::plan::PlanError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Sgemm {
    /// What becomes of the product.
    pub epilogue: Function,
    /// Along which mode A, `(M,K)`, is contiguous.
    pub a: Major,
    /// Along which mode B, `(K,N)`, is contiguous.
    pub b: Major,
    /// Auxiliary tensors of the epilogue, `(M,N)`: strides 0 for a row or column that stands for all.
    pub aux: Vec<TensorSpec>,
    /// Whether all tensors have a last mode L; along it a read tensor may have stride 0.
    pub batched: bool,
    /// The structure of the kernel.
    pub variant: Variant,
    /// `(BM,BN,BK)`, the tile of a block, in elements.
    pub tile: Extents<3>,
    /// `(TM,TN)`, the elements of D that one thread computes.
    pub thread_tile: Extents<2>,
    /// The threads of a warp along M and N, where a warp has a tile of its own.
    pub warp: Extents<2>,
    /// Tiles in shared memory at a time, for `pipelined`.
    pub stages: u32,
    /// Bytes of one load of global memory: 16 or 4.
    pub vector: u32,
    /// How the tile of A lies in shared memory.
    pub smem_a: SmemLayout,
    /// How the tile of B lies in shared memory.
    pub smem_b: SmemLayout,
    /// What is made of bank conflicts.
    pub conflicts: ConflictLevel,
    /// Parts of K that blocks of their own sum up, for `pipelined`.
    pub split_k: u32,
    /// Blocks that run at a time, for `pipelined`: the tiles of D that do not fill such a wave are cut along K, as many times as
    /// lets its blocks end together, and a second kernel adds their parts in order. 0 leaves tiles whole. An H200 runs
    /// `min_blocks` on each of 132 multiprocessors.
    pub wave: u32,
    /// Blocks that a multiprocessor should have room for; 0 to leave it to the compiler.
    pub min_blocks: u32,
    /// Whether loads of shared memory are kept ahead of the products by a barrier of the warp, for `pipelined`.
    pub warp_sync: bool,
}

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

impl fmt::Debug for Sgemm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { epilogue, a, b, variant, tile, thread_tile, .. } = self;
        write!(f, "Sgemm {{ epilogue: {epilogue}, a: {a}, b: {b}")?;
        if !self.aux.is_empty() {
            write!(f, ", aux: [{}]", SpecList(self.aux.clone()))?;
        }
        write!(f, ", batched: {}, variant: {variant}, tile: {tile}, thread_tile: {thread_tile}", self.batched)?;
        if variant.has_mma() {
            write!(f, ", warp: {}, vector: {}", self.warp, self.vector)?;
        }
        if *variant == Variant::Pipelined {
            let Self { stages, split_k, wave, warp_sync, .. } = self;
            write!(f, ", stages: {stages}, split_k: {split_k}, wave: {wave}, warp_sync: {warp_sync}")?;
        }
        let Self { smem_a, smem_b, conflicts, min_blocks, .. } = self;
        write!(f, ", smem_a: {smem_a}, smem_b: {smem_b}, conflicts: {conflicts}, min_blocks: {min_blocks} }}")
    }
}

/// What is wrong with an expression, as the reason why a setting cannot be read.
fn one_line(error: ExprError) -> String {
    let ExprError { found, required, help, position, .. } = error;
    let at = position.map_or_else(String::new, |p| format!(" at position {p}"));
    let help = if help.is_empty() { help } else { format!("; {help}") };
    format!("found {found}{at}, required {required}{help}")
}

/// What can be set.
pub const SETTINGS: &[Setting] = &[
    Setting {
        key: "epilogue",
        doc: "the function of the accumulator a, of C's element b, of auxiliary elements c, d, ..",
        example: "|a, b, c; alpha, beta| relu(alpha * a + beta * b + c)",
    },
    Setting { key: "a", doc: "A, (M,K), is contiguous along its rows or columns: row, col", example: "col" },
    Setting { key: "b", doc: "B, (K,N), is contiguous along its rows or columns: row, col", example: "col" },
    Setting { key: "aux", doc: "type and strides of each auxiliary tensor, (M,N)", example: "f32:(0,1)" },
    Setting { key: "batched", doc: "whether all tensors have a last mode L: true, false", example: "true" },
    Setting {
        key: "variant",
        doc: "the rung: naive, coalesced, smem_tiled, block_1d, block_2d, vectorized, warp_tiled, pipelined",
        example: "block_2d",
    },
    Setting { key: "tile", doc: "tile of a block in elements, BMxBNxBK", example: "128x128x16" },
    Setting { key: "thread", doc: "elements of D that one thread computes, TMxTN", example: "8x8" },
    Setting { key: "warp", doc: "threads of a warp along M and N, for warp_tiled and pipelined", example: "4x8" },
    Setting { key: "stages", doc: "tiles in shared memory at a time, for pipelined", example: "3" },
    Setting { key: "vector", doc: "bytes of one load of global memory, 16 or 4", example: "16" },
    Setting { key: "smem_a", doc: "tile of A in shared memory: auto, pad<elements>, or a swizzle", example: "pad4" },
    Setting {
        key: "smem_b",
        doc: "tile of B in shared memory: auto, pad<elements>, or a swizzle",
        example: "Sw<2,3,3>",
    },
    Setting {
        key: "conflicts",
        doc: "bank conflicts are an error, a warning, or nothing: deny, warn, allow",
        example: "warn",
    },
    Setting { key: "split_k", doc: "parts of K with blocks of their own, for pipelined", example: "4" },
    Setting {
        key: "wave",
        doc: "blocks that run at a time: tiles that do not fill a wave are cut along K, for pipelined; 0 for none",
        example: "264",
    },
    Setting {
        key: "min_blocks",
        doc: "blocks a multiprocessor should have room for, 0 to leave it open",
        example: "2",
    },
    Setting {
        key: "warp_sync",
        doc: "keep loads of shared memory ahead of the products by __syncwarp, for pipelined: true, false",
        example: "true",
    },
];

/// The kernels of the catalogue: every rung, and what differs in their text.
pub const CATALOGUE: &[&str] = &[
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
    "variant=pipelined\nbatched=true\ntile=64x64x32\nthread=8x4\nconflicts=warn\nwave=660\nmin_blocks=5",
];

impl Recipe for Sgemm {
    const FAMILY: &'static str = "sgemm";
    const RUST_TYPE: &'static str = "Sgemm";

    fn plan_as(&self, name: &str, targets: &Targets) -> Result<Plan, PlanError> {
        decide::plan(self, name, targets)
    }

    fn default_name(&self) -> String {
        let major = |major: Major| if major == Major::Row { "t" } else { "n" };
        // BLAS's words, for the column-major world: t is transposed, so row-major.
        let usual = Self::rung(self.variant);
        let mut name = format!("{}_{}_{}{}", Self::FAMILY, self.variant, major(self.a), major(self.b));
        if self.tile != usual.tile {
            name += &format!("_{}", self.tile);
        }
        if self.split_k != usual.split_k {
            name += &format!("_split{}", self.split_k);
        }
        if self.wave != usual.wave {
            name += &format!("_wave{}", self.wave);
        }
        if self.batched {
            name += "_batched";
        }
        name
    }

    fn from_settings(settings: &Settings) -> Result<Self, PlanError> {
        let mut reader = Reader::new(Self::FAMILY, SETTINGS, settings);
        let mut variant = Variant::default();
        reader.read("variant", &mut variant);
        let mut recipe = Self::rung(variant);
        reader.read_with("epilogue", &mut recipe.epilogue, |text| text.parse().map_err(one_line));
        reader.read("a", &mut recipe.a);
        reader.read("b", &mut recipe.b);
        let mut aux = SpecList(Vec::new());
        reader.read("aux", &mut aux);
        recipe.aux = aux.0;
        reader.read("batched", &mut recipe.batched);
        reader.read("tile", &mut recipe.tile);
        reader.read("thread", &mut recipe.thread_tile);
        reader.read("warp", &mut recipe.warp);
        reader.read("stages", &mut recipe.stages);
        reader.read("vector", &mut recipe.vector);
        reader.read("smem_a", &mut recipe.smem_a);
        reader.read("smem_b", &mut recipe.smem_b);
        reader.read("conflicts", &mut recipe.conflicts);
        reader.read("split_k", &mut recipe.split_k);
        reader.read("wave", &mut recipe.wave);
        reader.read("min_blocks", &mut recipe.min_blocks);
        reader.read("warp_sync", &mut recipe.warp_sync);
        reader.finish().map(|()| recipe)
    }

    fn settings(&self) -> Settings {
        let mut settings = Settings::new();
        settings
            .set("epilogue", self.epilogue.to_string())
            .set("a", self.a.to_string())
            .set("b", self.b.to_string())
            .set("aux", SpecList(self.aux.clone()).to_string())
            .set("batched", self.batched.to_string())
            .set("variant", self.variant.to_string())
            .set("tile", self.tile.to_string())
            .set("thread", self.thread_tile.to_string())
            .set("warp", self.warp.to_string())
            .set("stages", self.stages.to_string())
            .set("vector", self.vector.to_string())
            .set("smem_a", self.smem_a.to_string())
            .set("smem_b", self.smem_b.to_string())
            .set("conflicts", self.conflicts.to_string())
            .set("split_k", self.split_k.to_string())
            .set("wave", self.wave.to_string())
            .set("min_blocks", self.min_blocks.to_string())
            .set("warp_sync", self.warp_sync.to_string());
        settings
    }
}

// The chapter's examples are tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/sgemm.md")]
struct TheSgemmLadder;
