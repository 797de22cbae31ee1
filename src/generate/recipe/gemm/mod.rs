//! `gemm`: D = epilogue(A @ B, C, ..) on tensor cores, factors of 8 or 16 bits or tf32, sums in f32, of integers in i32. Each group of architectures
//! has a text of its own: `cp.async`, `ldmatrix` and `mma.sync` from sm_80 on; TMA, WGMMA, clusters and persistent CTAs on sm_90a.

mod budget;
mod candidates;
pub mod choose;
mod decide;
#[cfg(feature = "emit")]
mod emit;
mod entries;
mod factors;
mod kept;
mod launch;
mod order;
mod predict;
mod prefetch;
mod presets;
mod raster;
mod resident;
mod rule;
mod settings;
mod stream_k;
mod text_settings;
mod tilings;

pub use factors::{Block, Consumers, Factors, ScaleType};
use half::{bf16, f16};

use crate::arch::{Arch, Targets};
use crate::diagnostic::PlanError;
use crate::dtype::{DType, E4m3, E5m2};
use crate::expr::Function;
use crate::model::Machine;
use crate::plan::{Groups, Plan};
use crate::recipe::field::recipe;
use crate::recipe::product::{Extents, Gives, Major, Problem, ProductArgs, Record, Takes};
use crate::recipe::reader::Reader;
use crate::recipe::{OfTensors, Raster, Recipe, TensorSpec};
use crate::settings::Setting;

recipe! {
    /// `D = epilogue(A @ B, C, ..)`: A `(M,K)` and B `(K,N)` of f16 or bf16, D `(M,N)` of the same type or f32, C like
    /// D. Each is contiguous along either mode, of any extents, and may lie anywhere. With `batched`, all have a last
    /// mode L. Operands whose rows begin at multiples of 16 bytes are the fastest: TMA, or `cp.async`, copies them. A
    /// launch packs any other operand into a workspace first.
    ///
    /// With `dtype=tf32` A, B and D are f32, and each element of A and B is rounded to tf32, 10 bits of fraction, on its way. Tensor
    /// cores take tf32 along K only: a launch transposes operands that lie along M or N while it packs them.
    ///
    /// With `dtype=e4m3` or `e5m2`, A and B are floats of 8 bits, and `dtype_b` mixes the two. They lie along K like tf32, and
    /// architectures from sm_89 on multiply them. D is f16, bf16, f32 or e4m3. Tensor cores keep 14 bits of such a sum; on sm_90a `promote` moves it to f32 in time.
    /// Scales are epilogue inputs: see [`Gemm::scaled_rows`].
    ///
    /// With `dtype=i8`, A and B are integers of 8 bits, which lie along K too, and sums are i32. They are exact; a K beyond 131071, whose
    /// sums may not fit, is refused. D is i32, and the epilogue then computes in i32; or f16, bf16 or f32, and it computes in f32 of the
    /// sum rounded to f32.
    ///
    /// The epilogue is a traced function of the accumulator, of the element of C, and of auxiliary tensors, in this
    /// order. A text names them in front, `|a, c, bias| a + c + bias`, or calls them `a`, `b`, `c`, ..; the default is
    /// the accumulator. If C is only ever multiplied by a run-time scalar, a launch with that scalar 0 does not read C.
    /// If the accumulator is, A and B are not read. A function of two outputs gives D and E, `(M,N)` like D; a plan's
    /// operands end in E, D. For example, `gelu(a), a` keeps the input of gelu for a backward pass. Products are exact.
    /// Sums are f32, in an order of the tensor cores' choice. The epilogue is f32, and each element of D is rounded
    /// once.
    ///
    /// ```
    /// use cutemplate::arch::Targets;
    /// use cutemplate::dtype::DType;
    /// use cutemplate::expr::Function;
    /// use cutemplate::recipe::{Gemm, Recipe};
    ///
    /// let bias = vec!["f32:(0,1)".parse().expect("one row for all")];
    /// let gelu = Function::nary(3, |_, x| [(x[0] + x[2]).gelu()]).expect("a function");
    /// let plan = Gemm::default().with_epilogue(gelu, bias).plan(&Targets::default())?;
    /// // One recipe, one typed launch; a text, entries and parameters for each group of architectures.
    /// assert_eq!((plan.operands().len(), plan.texts().len()), (4, 2));
    /// # Ok::<(), cutemplate::diagnostic::PlanError>(())
    /// ```
    pub struct Gemm |this| {
        /// type in which A and B are multiplied: f16, bf16, tf32 (A and B are f32), e4m3, e5m2 or i8
        dtype: Factors, "bf16";
        /// type of B; auto: that of A. e4m3 and e5m2 mix
        dtype_b: Option<Factors>, "e5m2", if this.dtype_b.is_some();
        /// e4m3 and e5m2: elements of K after which the tensor cores' sum, of 14 bits, is added to a sum in f32, 0 for never
        promote: u32, "128", if this.promote != 0;
        /// e4m3 and e5m2: block scales of A, f32: one for 128 elements of a row, or for 128 rows of them; see [`Gemm::block_scaled`]: 1x128,
        /// 128x128
        scale_a: Option<Block>, "1x128", if this.scale_a.is_some();
        /// the same of B: one for 128 elements of a column, or for 128 columns of them; A and B both have them, or neither
        scale_b: Option<Block>, "128x128", if this.scale_b.is_some();
        /// type of these scales: f32, or ue8m0, powers of two of a byte each
        scale_type: ScaleType, "ue8m0", if this.scale_type != ScaleType::F32;
        /// e4m3 D: the epilogue quantises it, and writes scales of D, f32, one for 128 elements of a row; see [`Gemm::quantised`]: 1x128
        scale_d: Option<Block>, "1x128", if this.scale_d.is_some();
        /// type of C and D: f32, or that of A and B; of 8-bit floats f16, bf16, f32 or e4m3; of i8 i32, f16, bf16 or f32
        out: DType, "f32";
        /// the function of the accumulator, of C's element and of auxiliary elements, in this order, that gives D, or D and E; they are a, b,
        /// c, .. unless it names them
        epilogue: Function, "|a, c, bias; alpha, beta| relu(alpha * a + beta * c + bias)", if this.epilogue != accumulator();
        /// A, (M,K), is contiguous along its rows (K-major) or columns (M-major): row, col
        a: Major, "col", if this.a != Major::Row;
        /// B, (K,N), is contiguous along its rows (N-major) or columns (K-major): row, col
        b: Major, "row", if this.b != Major::Col;
        /// C and D, (M,N), are contiguous along their rows or columns: row, col. For columns the kernel computes D^T = B^T @ A^T;
        /// tiles and clusters then refer to D^T
        d: Major, "col", if this.d != Major::Row;
        /// type and strides of each auxiliary tensor, (M,N): stride 0 broadcasts a row or column
        aux: Vec<TensorSpec>, "f32:(0,1)", if !this.aux.is_empty();
        /// whether all tensors have a last mode L, along which a read tensor may have stride 0: true, false
        batched: bool, "true", if this.batched;
        /// rows of A and D fall into groups, each with a matrix of B: one after the other, up to offsets on the device, or each in a matrix
        /// of its own, with counts on the device; or columns of A and rows of B fall into groups, each with a matrix of D: none, rows, masked, k
        groups: Groups, "rows", if this.groups != Groups::None;
        /// a tensor on the device says which row of A each row of the product reads; see [`Gemm::gathered`]: true, false
        gather: bool, "true", if this.gather;
        /// a tensor on the device says which row of D each row of the product is; see [`Gemm::scattered`]: true, false
        scatter: bool, "true", if this.scatter;
        /// neighbouring columns of A @ B are pairs: the epilogue's first two inputs are the accumulators of columns 2j and 2j + 1, and C and D
        /// are (M,N/2); see [`Gemm::gated`]: true, false
        pairs: bool, "true", if this.pairs;
        /// sm_90a: tile of a CTA in elements, BMxBNxBK; BN is a multiple of 16, BK 16, 32 or 64, of tf32 8, 16 or 32, of 8 bits 32, 64 or 128
        tile: Extents<3>, "256x128x64";
        /// sm_90a: stages (k-tiles in shared memory), 2 to 16
        stages: u32, "3";
        /// sm_90a: all warpgroups compute each tile together, or two take turns with a tile each: one multiplies while the other
        /// stores: cooperative, pingpong
        schedule: Consumers, "pingpong";
        /// sm_90a: CTAs of a cluster along M and N, which share loads by multicast: 1, 2 or 4 of each, 8 at most
        cluster: Extents<2>, "1x2";
        /// sm_90a: split-K: CTAs of a cluster that share a tile; each takes a part of K and stores its share of the columns: 1, 2, 4
        split_k: u32, "2", if this.split_k != 1;
        /// stream-K: minimum saving in k-tiles per CTA before the tiles of the last wave are split along K; also the
        /// shortest piece. A separate entry adds up the sums. 0: no tile is split
        stream_k: u32, "16", if this.stream_k != 0;
        /// tiles of a cluster that are computed along M, or N, before the next along the other mode; auto: 2 if a launch takes
        /// up to about 36 microseconds and has more than 3 of them, else 8
        group: Option<u32>, "4", if this.group.is_some();
        /// mode along which the tiles of a group lie: m, or n; auto: the longer mode of the cluster, else the longer
        /// one of the tile
        raster: Option<Raster>, "n", if this.raster.is_some();
        /// sm_90a: the most CTAs of a launch; each computes tiles until none is left
        ctas: u32, "128";
        /// older architectures: tile of a CTA
        sm80_tile: Extents<3>, "128x256x32";
        /// older architectures: stages (k-tiles in shared memory), 2 to 16
        sm80_stages: u32, "4";
        /// older architectures: as stream_k, with sm80_ctas resident at a time
        sm80_stream_k: u32, "8", if this.sm80_stream_k != 0;
        /// older architectures: the most CTAs of a launch; each computes tiles until none is left
        sm80_ctas: u32, "216", if this.sm80_ctas != MOST_CTAS;
    }
}

pub use presets::NoFactors;

/// CTAs of a launch, at most: for the text of older architectures one for each tile, of all but the largest products.
const MOST_CTAS: u32 = 1 << 16;

/// D is the accumulator, rounded.
fn accumulator() -> Function {
    Function::unary(|sum| sum)
}

impl Gemm {
    /// The same with operands of another type, both: k-tiles of as many bytes. D has their type if it had that of the old
    /// operands; beside operands of 8 bits it is bf16.
    ///
    /// ```
    /// use cutemplate::recipe::Gemm;
    /// use cutemplate::recipe::gemm::Factors;
    ///
    /// let gemm = Gemm::default().with_factors(Factors::Tf32);
    /// assert_eq!((gemm.tile.to_string(), gemm.out.name()), ("128x256x32".to_owned(), "f32"));
    /// ```
    #[must_use]
    pub fn with_factors(self, dtype: Factors) -> Self {
        let scaled = |extent: u32| u32::try_from(i64::from(extent) * dtype.vector() / self.dtype.vector());
        let of = |Extents([m, n, k]): Extents<3>| Extents([m, n, scaled(k).unwrap_or(u32::MAX)]);
        let out = if self.out == self.dtype.usual_out() { dtype.usual_out() } else { self.out };
        Self {
            dtype,
            dtype_b: None,
            scale_a: None,
            scale_b: None,
            out,
            tile: of(self.tile),
            sm80_tile: of(self.sm80_tile),
            ..self
        }
    }

    /// The same with another epilogue and its auxiliary tensors.
    #[must_use]
    pub fn with_epilogue(self, epilogue: Function, aux: Vec<TensorSpec>) -> Self {
        Self { epilogue, aux, ..self }
    }
}

impl Default for Gemm {
    fn default() -> Self {
        Self {
            dtype: Factors::F16,
            dtype_b: None,
            promote: 0,
            scale_a: None,
            scale_b: None,
            scale_type: ScaleType::F32,
            scale_d: None,
            out: DType::F16,
            epilogue: accumulator(),
            a: Major::Row,
            b: Major::Col,
            d: Major::Row,
            aux: Vec::new(),
            batched: false,
            groups: Groups::None,
            gather: false,
            scatter: false,
            pairs: false,
            tile: Extents([128, 256, 64]),
            stages: 4,
            schedule: Consumers::Cooperative,
            cluster: Extents([2, 1]),
            split_k: 1,
            stream_k: 0,
            group: None,
            raster: None,
            ctas: 132,
            sm80_tile: Extents([128, 128, 64]),
            sm80_stages: 3,
            sm80_stream_k: 0,
            sm80_ctas: MOST_CTAS,
        }
    }
}

/// The arguments of one launch: A, B, C, auxiliary tensors, D, and the values of the run-time scalars.
///
/// ```
/// use cutemplate::recipe::gemm::GemmArgs;
/// use cutemplate::view::{View, ViewLayout, ViewMut};
/// use half::f16;
///
/// // A is 2 x 8, B is 8 x 4, contiguous along K.
/// let (a, b, mut d) = ([f16::ONE; 16], [f16::ONE; 32], [0.0_f32; 8]);
/// let by_columns = ViewLayout::strided(&[8, 4], &[1, 8]).expect("few elements");
/// let args = GemmArgs::new(View::host(&a, [2, 8], 8), View::host_strided(&b, by_columns), ViewMut::host(&mut d, [2, 4], 4));
/// # drop(args);
/// ```
pub type GemmArgs<'a, S> = ProductArgs<'a, Gemm, S>;

// The chapter's examples are tests.
#[cfg(doctest)]
#[doc = include_str!("../../../../docs/gemm.md")]
struct TheChapter;

#[cfg(doctest)]
#[doc = include_str!("../../../../docs/lowprec.md")]
struct TheChapterOf8Bits;

impl OfTensors for Gemm {}
impl Takes<f16> for Gemm {}
impl Takes<bf16> for Gemm {}
impl Takes<f32> for Gemm {}
impl Takes<E4m3> for Gemm {}
impl Takes<E5m2> for Gemm {}
impl Takes<i8> for Gemm {}
impl Gives<E4m3> for Gemm {}
impl Gives<i32> for Gemm {}
impl Gives<f16> for Gemm {}
impl Gives<bf16> for Gemm {}
impl Gives<f32> for Gemm {}

impl Recipe for Gemm {
    const FAMILY: &'static str = "gemm";
    const RUST_TYPE: &'static str = "Gemm";
    const SUMMARY: &'static str =
        "D = epilogue(A @ B, C, ..) on tensor cores: f16, bf16, tf32, e4m3, e5m2 or i8 in, f32 or i32 accumulation";
    const SETTINGS: &'static [Setting] = SETTINGS;
    /// Every type, every swizzle and major; one to three warpgroups that compute a tile, or ping-pong; clusters of one,
    /// two and four; split-K; epilogues of one output and of two; batches; 8-bit floats with scales, mixed and promoted; integers.
    const CATALOGUE: &'static [&'static str] = &[
        "out=f16",
        "out=f32\nepilogue=|a; alpha| relu(alpha * a), -a\ntile=64x256x32\ncluster=1x2\nsplit_k=2\nsm80_tile=64x256x32\nsm80_stages=4",
        "dtype=bf16\nout=f32\nepilogue=relu(a), a\ntile=192x64x16\nstages=2\ncluster=1x1\nstream_k=1\nsm80_tile=128x64x16\nsm80_stages=2\nsm80_stream_k=1\nsm80_ctas=7",
        "dtype=bf16\nout=bf16\nepilogue=|a, b| a + b, a\ntile=256x96x64\nstages=3\ncluster=2x2\nsm80_tile=64x96x64\na=col\nb=row\nd=col",
        "epilogue=|a, b, c; alpha, beta| gelu(alpha * a + beta * b + c)\naux=f32:(0,1,0)\nbatched=true\na=col\nb=row\ntile=128x128x64",
        "dtype=tf32\na=col\ntile=128x192x32\nschedule=pingpong\nraster=n\nepilogue=relu(a), a\nsm80_tile=128x128x16\nsm80_stages=4\nsm80_ctas=5",
        "schedule=pingpong\ntile=128x192x64\nsm80_tile=128x64x32\nepilogue=|a, b, c| gelu(a + c)\naux=f16:(1,0)",
        "dtype=e4m3\nepilogue=|a, scale_a, scale_b| a * scale_a * scale_b\naux=f32:(1,0), f32:(0,1)",
        "dtype=e5m2\ndtype_b=e4m3\npromote=128\nout=e4m3\na=col\ntile=128x128x64\ncluster=1x2\nepilogue=|a, scale| a * scale\naux=f32:(0,0)",
        "dtype=i8\nout=bf16\nepilogue=|a, scale_a, scale_b| a * scale_a * scale_b\naux=f32:(1,0), f32:(0,1)",
    ];
    const PROBLEM: &'static [i64] = &[4096, 4096, 4096];

    fn retyped(self, reader: &mut Reader<'_>) -> Self {
        let (mut dtype, mut promote) = (self.dtype, self.promote);
        reader.read("dtype", &mut dtype);
        reader.read("promote", &mut promote);
        let mut recipe = if dtype == self.dtype { self } else { self.with_factors(dtype) };
        if promote > 0 {
            // A thread has two accumulators for each sum.
            recipe.tile.0[1] = recipe.tile.0[1].min(128);
        }
        recipe
    }

    /// Factors that are twice as wide take twice as long along K.
    fn as_measured(&self, problem: &Problem) -> Problem {
        Problem { k: problem.k.saturating_mul(self.dtype.dtype().bytes().0).div_ceil(DType::F16.bytes().0), ..*problem }
    }

    /// Elements are as wide, both are integers or both are not, and both sums are promoted or both are not.
    fn is_measured_with(&self, other: &Self) -> bool {
        let kind = |of: &Self| (of.dtype.dtype().bytes(), of.dtype == Factors::I8, of.promote > 0);
        kind(self) == kind(other)
    }

    /// No tensor core before sm_89 multiplies 8-bit floats, and sm_90a has WGMMA. Groups that begin in a column of A want TMA.
    fn usual_targets(&self) -> Targets {
        let newer = self.dtype.is_narrow() || self.groups == Groups::Rows && self.a == Major::Col;
        let sm90a = if newer { Targets::new([Arch::Sm90a]) } else { None };
        sm90a.unwrap_or_default()
    }

    fn plan_as(&self, name: &str, targets: &Targets) -> Result<Plan, PlanError> {
        decide::plan(self, name, targets)
    }

    fn candidates(problem: &Problem, machine: &Machine) -> Vec<Self> {
        choose::candidates(problem, machine)
    }

    fn expected(problem: &Problem, machine: &Machine) -> Vec<(Self, f64)> {
        choose::expect(problem, machine).into_iter().map(|one| (one.recipe.clone(), one.seconds())).collect()
    }

    const DOUBT: f64 = 1.02;

    /// Measurements on an NVIDIA H200, with nvcc 13.0: f16 in and out, integers from -2 to 2, but N(0,1) for 16384 x
    /// 16384 x 16384; e4m3 in and bf16 out, without and with scales of blocks, N(0,1); i8 in and i32 out.
    fn record() -> Option<Record> {
        include_str!("h200.txt").parse().ok()
    }

    fn default_name(&self) -> String {
        let usual = Self::default().with_factors(self.dtype);
        let [of_a, of_b] = self.block_scales().unwrap_or_default();
        let (scales, scale_type) = (self.scale_a.is_some(), self.scale_type);
        let major = |major: Major| if major == Major::Row { "t" } else { "n" };
        let majors = [self.a, self.b, self.d];
        let word = |word: &str| word.to_owned();
        // What differs from the usual, and how the name says it.
        let differing = [
            (self.dtype_b.is_some(), self.dtype_b.map_or_else(String::new, |of_b| of_b.to_string())),
            (self.promote != usual.promote, format!("promote{}", self.promote)),
            (scales, format!("scales{of_a}x{of_b}")),
            (scales && scale_type != ScaleType::F32, scale_type.to_string()),
            (self.scale_d.is_some(), word("quantised")),
            (self.out != self.dtype.dtype(), self.out.to_string()),
            (majors != [usual.a, usual.b, usual.d], majors.map(major).concat()),
            (self.batched, word("batched")),
            (self.groups != Groups::None, self.groups.to_string()),
            (self.gather, word("gather")),
            (self.scatter, word("scatter")),
            (self.pairs, word("pairs")),
            (self.tile != usual.tile, self.tile.to_string()),
            (self.schedule != usual.schedule, self.schedule.to_string()),
            (self.stages != usual.stages, format!("stages{}", self.stages)),
            (self.cluster != usual.cluster, format!("cluster{}", self.cluster)),
            (self.split_k != usual.split_k, format!("split{}", self.split_k)),
            (self.stream_k != usual.stream_k, word("stream_k")),
        ];
        let words = differing.into_iter().filter(|(differs, _)| *differs).map(|(_, word)| format!("_{word}"));
        words.fold(format!("{}_{}", Self::FAMILY, self.dtype), |name, word| name + &word)
    }
}
