//! Products of matrices: what D is.

use crate::expr::{Checked, Compute, Function};
use crate::plan::{ModeStride, Numbers, Operand, ProblemShape};
use crate::settings::named;

/// `D = epilogue(A @ B, C, ..)`: A `(M,K)`, B `(K,N)`, all others `(M,N)`, perhaps each with a last mode L.
///
/// The epilogue is a function of the accumulator, the sum over k of `A(m,k) * B(k,n)` from 0 on, of the element of C, and of
/// those of the auxiliary tensors. The operands are A, B, C where it is read, the auxiliary tensors, and D.
///
/// C and D of pairs are `(M,N/2)`. Element j of a row is a function of two accumulators, those of columns 2j and 2j + 1. An auxiliary tensor
/// along N gives it both its elements.
///
/// ```
/// use cutemplate::arch::Targets;
/// use cutemplate::recipe::{Recipe, Sgemm};
///
/// let plan = Sgemm::default().plan(&Targets::default())?;
/// let product = plan.reference().and_then(|reference| reference.product()).expect("a product");
/// // alpha * (A @ B) + beta * C, as BLAS has it: what is multiplied by 0 is not read.
/// assert!(product.reads_factors(&[1.0, 0.0]) && !product.reads_c(&[1.0, 0.0]));
/// # Ok::<(), cutemplate::diagnostic::PlanError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Product {
    epilogue: Checked,
    /// The parameters that hold the run-time scalars.
    scalar_params: Vec<String>,
    batched: bool,
    groups: Groups,
    indexed: Indexed,
    sums: usize,
    has_c: bool,
    alpha: Option<usize>,
    beta: Option<usize>,
    arithmetic: Arithmetic,
    block_scales: Option<BlockScales>,
    quantiser: Option<Checked>,
}

named! {
    /// How rows of A and D fall into groups, each with a matrix of B of its own. Only the device knows how many rows a group has.
    #[derive(Default)]
    Groups, "groups":
    /// There are none.
    #[default]
    None = "none",
    /// One after the other: A `(M,K)`, B `(K,N,L)`, D `(M,N)`. Group l ends ahead of row `Offsets(l)`, or of M where that is less. It
    /// begins where the group before ends, and is empty where its offset is less. Rows behind the last group are not written.
    Rows = "rows",
    /// Along K: A `(M,K)`, B `(K,N)`, D `(M,N,L)`. Group l is the product of the columns of A, and rows of B, from `Offsets(l-1)`, or 0, to
    /// `Offsets(l)`; each counts as 0 where it is less, and as K where it is more. A group that ends ahead of its begin has none.
    K = "k",
    /// Each in a matrix of its own: A `(M,K,L)`, B `(K,N,L)`, D `(M,N,L)`. Group l has the first `Counts(l)` rows, at most M. The
    /// others are not written.
    Masked = "masked",
}

impl Groups {
    /// The operand of i32 that says where groups end, or how many rows they have: one element for each group.
    pub fn operand(self) -> Option<&'static str> {
        match self {
            Groups::None => None,
            Groups::Rows | Groups::K => Some(OFFSETS),
            Groups::Masked => Some(COUNTS),
        }
    }

    /// Whether each has rows of its own, as many as the device says.
    pub(crate) fn are_of_rows(self) -> bool {
        matches!(self, Groups::Rows | Groups::Masked)
    }

    /// Whether an operand has a last mode L, where `batched` products have it.
    pub(crate) fn have_l(self, operand: &str, batched: bool) -> bool {
        match self {
            Groups::None => batched,
            Groups::Rows => operand == "B",
            Groups::K => !matches!(operand, "A" | "B"),
            Groups::Masked => true,
        }
    }
}

/// Which rows an index on the device names, one for each of the product's M rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Indexed {
    /// A is `(ROWS,K)`, and row m of the product reads its row `Gather(m)`: zeros where A has no such row.
    pub gather: bool,
    /// D is `(ROWS,N)`, and row m of the product is its row `Scatter(m)`. It is not written where D has no such row. Two rows of the
    /// product may not have one index.
    pub scatter: bool,
}

impl Indexed {
    /// The operands of i32 that hold the indices, `(M)`.
    pub(crate) fn operands(self) -> impl Iterator<Item = &'static str> {
        [(self.gather, GATHER), (self.scatter, SCATTER)].into_iter().filter(|(is, _)| *is).map(|(_, name)| name)
    }
}

/// The name of the ends of groups.
const OFFSETS: &str = "Offsets";

/// The name of the lengths of groups.
const COUNTS: &str = "Counts";

/// The name of the rows of A that a product reads.
const GATHER: &str = "Gather";

/// The name of the rows of D that a product writes.
const SCATTER: &str = "Scatter";

/// Rows of A, and columns of B, that share a scale: 1, or [`SCALED_K`]. Each scale is of so many elements along K.
pub type BlockScales = [i64; 2];

/// Elements along K that share a scale.
pub const SCALED_K: i64 = 128;

/// The names of the scales of A, (M/rows, K/128), and of B, (K/128, N/columns): the last matrices that a product reads.
pub(crate) const SCALES: [&str; 2] = ["ScaleA", "ScaleB"];

/// The name of the scales of a quantised D, (M, N/128): the first operand that a product writes.
pub(crate) const SCALE_D: &str = "ScaleD";

/// Columns of D that share a scale.
pub const SCALED_N: i64 = 128;

/// What becomes of an element of D, and the scale that it shares with its neighbours: `m` is the largest size among them. The preset
/// `quantize` of `rows` has the same text.
pub(crate) const QUANTISER: &str =
    "|x, m| { let s = select(m == 0, 1, m / 448); let r = min(1 / s, 3e38); (saturate(e4m3, x * r), s) }";

/// How the factors of a product are multiplied and added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Arithmetic {
    /// In f32, each operation rounded, or fused.
    #[default]
    F32,
    /// By tensor cores: products of 16-bit factors are exact, and additions are truncated.
    TensorCores,
    /// The same with factors of f32, each rounded to tf32 first, 10 bits of fraction. A value halfway goes either way.
    Tf32,
    /// By tensor cores, of 8-bit floats: products are exact, but a sum keeps 14 bits.
    Fp8 {
        /// Elements of K after which it is added to a sum in f32; 0 for never.
        promoted: u32,
    },
    /// By tensor cores, of 8-bit integers: sums are i32, and exact.
    Int8,
}

/// Whether a scalar, as the kernel gets it, is 0.
pub(crate) fn is_zero(scalars: &[f64], index: Option<usize>) -> bool {
    index.and_then(|i| scalars.get(i)).is_some_and(|s| *s as f32 == 0.0)
}

impl Product {
    /// The product of an epilogue whose first `sums` inputs are accumulators.
    pub(crate) fn new(epilogue: Checked, scalar_params: Vec<String>, batched: bool, sums: usize) -> Self {
        let function = epilogue.function();
        let has_c = function.inputs() > sums && !function.unused_inputs().contains(&sums);
        let (alpha, beta) = (function.only_scaled(0), function.only_scaled(sums));
        // Both of a pair, or none.
        let alpha = alpha.filter(|alpha| (1..sums).all(|sum| function.only_scaled(sum) == Some(*alpha)));
        let (groups, arithmetic, block_scales, quantiser) = (Groups::None, Arithmetic::F32, None, None);
        let indexed = Indexed::default();
        Self {
            epilogue,
            scalar_params,
            batched,
            groups,
            indexed,
            sums,
            has_c,
            alpha,
            beta,
            arithmetic,
            block_scales,
            quantiser,
        }
    }

    /// The same, its sums computed so.
    pub(crate) fn computed(self, arithmetic: Arithmetic) -> Self {
        Self { arithmetic, ..self }
    }

    /// The same of groups of rows.
    pub(crate) fn grouped(self, groups: Groups) -> Self {
        Self { groups, ..self }
    }

    /// The same of rows that an index names.
    pub(crate) fn indexed(self, indexed: Indexed) -> Self {
        Self { indexed, ..self }
    }

    /// Which rows an index names.
    pub fn indices(&self) -> Indexed {
        self.indexed
    }

    /// Neighbouring columns of A @ B that an element of D is made of: 1, or 2 of pairs.
    pub fn sums(&self) -> usize {
        self.sums
    }

    /// How many inputs of the epilogue an operand that it reads is: two of a pair where it lies along N, unless it is C.
    pub(crate) fn inputs_of(&self, operand: &Operand) -> usize {
        let is_one = operand.name == "C" || operand.strides.get(1) == Some(&ModeStride::Broadcast);
        if is_one { 1 } else { self.sums }
    }

    /// How rows fall into groups.
    pub fn groups(&self) -> Groups {
        self.groups
    }

    /// The same with scales of blocks.
    pub(crate) fn scaled_by_blocks(self, block_scales: Option<BlockScales>) -> Self {
        Self { block_scales, ..self }
    }

    /// The blocks that have scales, if blocks do: each 128 products are multiplied by the product of their two scales.
    pub fn block_scales(&self) -> Option<BlockScales> {
        self.block_scales
    }

    /// The same with D in e4m3, and a scale for 128 elements of each of its rows.
    pub(crate) fn quantised(self) -> Self {
        let function: Function = QUANTISER.parse().unwrap_or_else(|error| unreachable!("{QUANTISER}: {error}"));
        let checked = function.check(Compute::F32);
        let checked = checked.unwrap_or_else(|errors| unreachable!("{QUANTISER}: {errors:?}"));
        Self { quantiser: Some(checked), ..self }
    }

    /// If D is quantised: the function of the epilogue's result and of the largest size among the 128 that share a scale, which gives the
    /// element of D, and the scale.
    pub fn quantiser(&self) -> Option<&Checked> {
        self.quantiser.as_ref()
    }

    /// How its sums are computed.
    pub fn arithmetic(&self) -> Arithmetic {
        self.arithmetic
    }

    /// Whether tensor cores compute them.
    pub fn is_on_tensor_cores(&self) -> bool {
        self.arithmetic != Arithmetic::F32
    }

    /// The function of the accumulator, or of a pair of them, of C's element, and of auxiliary elements.
    pub fn epilogue(&self) -> &Checked {
        &self.epilogue
    }

    /// The fields of the parameter struct that hold the run-time scalars.
    pub(crate) fn scalar_params(&self) -> &[String] {
        &self.scalar_params
    }

    /// Whether all tensors have a last mode L.
    pub fn is_batched(&self) -> bool {
        self.batched
    }

    /// Whether C is an operand: the epilogue uses its element.
    pub fn has_c(&self) -> bool {
        self.has_c
    }

    /// The run-time scalar, by number from 0, that spares reading A and B where it is 0.
    pub fn alpha(&self) -> Option<usize> {
        self.alpha
    }

    /// The run-time scalar that spares reading C where it is 0.
    pub fn beta(&self) -> Option<usize> {
        self.beta
    }

    /// The default of a run-time scalar, by number from 0: 1 for [`alpha`](Self::alpha) and 0 for [`beta`](Self::beta),
    /// so that a launch computes a function of A @ B. `None` for any other.
    pub fn usual_scalar(&self, index: usize) -> Option<f64> {
        match Some(index) {
            index if index == self.alpha => Some(1.0),
            index if index == self.beta => Some(0.0),
            _ => None,
        }
    }

    /// Whether a launch with these scalars reads A and B; elsewhere the accumulator is 0.
    pub fn reads_factors(&self, scalars: &[f64]) -> bool {
        !is_zero(scalars, self.alpha)
    }

    /// Whether a launch with these scalars reads C; elsewhere its elements count as 0.
    pub fn reads_c(&self, scalars: &[f64]) -> bool {
        self.has_c && !is_zero(scalars, self.beta)
    }

    /// The extents of a problem, M, N, K and perhaps L, of an A whose rows an index names also R, of such a D also S; and those that the
    /// modes of these operands have.
    pub(crate) fn problem_shape(&self, operands: &[Operand]) -> ProblemShape {
        let is_one = !self.batched && self.groups == Groups::None;
        let Indexed { gather, scatter } = self.indexed;
        let rows = if is_one { 3 } else { 4 };
        let (rows_a, rows_d) = (if gather { rows } else { 0 }, if scatter { rows + usize::from(gather) } else { 0 });
        let modes = operands.iter().map(|Operand { name, strides, .. }| match *name {
            "A" => [rows_a, 2, 3][..strides.len()].to_vec(),
            "ScaleA" => [0, 2, 3][..strides.len()].to_vec(),
            "B" | "ScaleB" => [2, 1, 3][..strides.len()].to_vec(),
            "D" | "E" => [rows_d, 1, 3][..strides.len()].to_vec(),
            name if Some(name) == self.groups.operand() => vec![3],
            _ => [0, 1, 3][..strides.len()].to_vec(),
        });
        let names = ["M", "N", "K", "L"].into_iter().take(rows);
        let names =
            names.chain([(gather, "R"), (scatter, "S")].into_iter().filter(|(is, _)| *is).map(|(_, name)| name));
        let shape = ProblemShape::new(names, modes).agreeing(
            "D(m,n) is the sum over k of A(m,k) * B(k,n), with C(m,n) and auxiliary elements of the same m and n",
            "A is (M,K), B is (K,N), and the others are (M,N); a broadcast mode has stride 0, not extent 1",
        );
        let scales = SCALES.iter().zip(self.block_scales.iter().flatten()).enumerate();
        let at = operands.iter().position(|operand| operand.name == SCALE_D).unwrap_or(operands.len());
        let sums = self.sums as i64;
        let shape = shape.with_groups(at, 1, SCALED_N * sums);
        // C, D and E have a column for each pair.
        let of_pairs = operands.iter().enumerate().filter(|(_, of)| sums > 1 && matches!(of.name, "C" | "D" | "E"));
        let shape = of_pairs.fold(shape, |shape, (index, _)| shape.with_groups(index, 1, sums));
        let shape = scales.fold(shape, |shape, (of, (name, rows))| {
            let index = operands.iter().position(|operand| operand.name == *name).unwrap_or(operands.len());
            shape.with_groups(index, of, *rows).with_groups(index, 1 - of, SCALED_K)
        });
        let example = match (is_one, sums) {
            (true, _) => &[255, 130, 67][..],
            (false, 1) => &[131, 67, 45, 3],
            (false, _) => &[131, 68, 45, 3],
        };
        let others = [(gather, 90), (scatter, 300)].into_iter().filter(|(is, _)| *is).map(|(_, rows)| rows);
        let shape = shape.with_example(&example.iter().copied().chain(others).collect::<Vec<i64>>());
        let shape = if self.batched { shape.with_batches(3) } else { shape };
        let numbers = |operand: &Operand| match operand.name {
            OFFSETS => Some((Numbers::Ends, if self.groups == Groups::K { 2 } else { 0 })),
            COUNTS => Some((Numbers::Counts, 0)),
            GATHER => Some((Numbers::Coordinates, rows_a)),
            SCATTER => Some((Numbers::Distinct, rows_d)),
            _ => None,
        };
        let all = operands.iter().enumerate().filter_map(|(index, operand)| Some((index, numbers(operand)?)));
        all.fold(shape, |shape, (index, (numbers, extent))| shape.with_numbers(index, numbers, extent))
    }
}
