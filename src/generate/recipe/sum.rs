//! `sum`: any traced function of matrices, summed along rows, by a warp or a block for each row.

#[cfg(feature = "emit")]
use askama::Template;

use crate::arch::{Arch, Targets};
use crate::diagnostic::{Code, PlanError};
use crate::dtype::DType;
#[cfg(feature = "emit")]
use crate::emit;
#[cfg(feature = "emit")]
use crate::expr::Helpers;
use crate::expr::rows::{Passes, Reduction};
use crate::expr::{Checked, Compute, Function, MAX_INPUTS};
use crate::layout::{Layout, LayoutError};
use crate::model::banks::WARP;
use crate::model::{Prediction, Traffic};
use crate::plan::checks::{self, Checks};
use crate::plan::{
    Draft, Entry, Fact, Field, Given, Int, KernelPlan, ModeStride, Operand, ParamStruct, ParamType, Plan, ProblemShape,
    Reach, Reference, Rule,
};
pub use crate::recipe::TensorArgs as SumArgs;
use crate::recipe::field::{as_displayed, recipe};
use crate::recipe::reader::Reader;
use crate::recipe::{Names, OfTensors, Recipe, TensorSpec};
use crate::reference::RowProgram;
use crate::settings::{Setting, named};
use crate::tiling::{
    Completion, CopyOp, Engine, Global, Guard, Lives, Order, Place, Proxy, ReduceOp, Reduced, Role, Scope, SmemTensor,
    Task, TileCopy, TileReduce, Tiling,
};
use crate::units::Bytes;
use crate::view::{Access, ViewRef};

named! {
    /// Which threads add up a row.
    #[derive(Default)]
    Group, "group of threads":
    /// The threads of a warp: for short rows, or many.
    #[default]
    Warp = "warp",
    /// The threads of a block.
    Block = "block",
}

as_displayed!(Group);

recipe! {
    /// `y(m)` is the sum over n of `function(a(m,n), b(m,n), ..)`, evaluated and added in f32; a row without elements gives 0.
    ///
    /// The order of the additions follows from the settings alone: launches on the same elements give the same bits.
    ///
    /// ```
    /// use cutemplate::arch::Targets;
    /// use cutemplate::recipe::{Recipe, Sum};
    ///
    /// let plan = Sum::default().plan(&Targets::default())?;
    /// assert_eq!((plan.threads(), plan.operands().len()), (256, 2));
    /// # Ok::<(), cutemplate::diagnostic::PlanError>(())
    /// ```
    pub struct Sum |this| {
        /// the function of inputs a to h, or as |x, bias| names them; run-time scalars as in |a, b; alpha|
        function = "expr": Function, "a * b";
        /// type and strides of each input, (M,N): 1 contiguous, 0 broadcast, ? given at launch
        inputs = "in": Vec<TensorSpec>, "f16:(?,1), f32:(0,1)";
        /// type of the sums
        out: DType, "f32";
        /// threads that add up a row: warp, block
        by: Group, "warp";
        /// threads of a block, a multiple of 32
        threads: u32, "256";
    }
}

impl Default for Sum {
    /// Rows of f32.
    fn default() -> Self {
        Self::new(Function::unary(|a| a), DType::F32)
    }
}

impl Sum {
    /// Row-major inputs of one type, sums of f32, a warp for each row.
    pub fn new(function: Function, dtype: DType) -> Self {
        let inputs = vec![TensorSpec::row_major(dtype, 2); function.inputs()];
        Self { function, inputs, out: DType::F32, by: Group::Warp, threads: 256 }
    }
}

impl OfTensors for Sum {}

impl Recipe for Sum {
    const FAMILY: &'static str = "sum";
    const RUST_TYPE: &'static str = "Sum";
    const SUMMARY: &'static str = "sums along rows of any function of 1 to 8 matrices, in f32";
    const SETTINGS: &'static [Setting] = SETTINGS;
    /// A warp and a block for each row, a broadcast input and one of any strides.
    const CATALOGUE: &'static [&'static str] = &[
        "expr=a",
        "expr=|a, b; alpha| alpha * a * b\nin=f16:(?,1), f32:(0,1)\nout=f16\nby=block",
        "expr=abs(a)\nin=bf16:(?,?)\nout=bf16\nthreads=128",
    ];
    const PROBLEM: &'static [i64] = &[16384, 8192];
    const EXAMPLES: &'static [(&'static str, &'static str)] = &[("run", "--set 'expr=abs(a)' --problem 100x5000")];

    fn plan_as(&self, name: &str, targets: &Targets) -> Result<Plan, PlanError> {
        plan(self, name, targets)
    }

    fn default_name(&self) -> String {
        format!("{}_{}_{}", Self::FAMILY, self.out, self.by)
    }

    fn base(reader: &mut Reader<'_>) -> Self {
        let Self { mut function, .. } = Self::default();
        reader.read("expr", &mut function);
        Self::new(function, DType::F32)
    }
}

/// The decisions.
#[derive(Debug)]
struct Decision {
    recipe: Sum,
    /// The function of the terms.
    map: Checked,
    sums: RowProgram,
    /// Which thread adds what.
    tiling: Tiling,
    operands: Vec<Operand>,
    /// The parameters that hold the run-time scalars.
    scalars: Vec<String>,
}

fn plan(recipe: &Sum, name: &str, targets: &Targets) -> Result<Plan, PlanError> {
    let mut checks = Checks::new(&format!("{recipe:?}"), targets);
    checks::kernel_name(&mut checks, name);
    let whole_warps = refuse(recipe, &mut checks);
    let map = checks::traced(&mut checks, &recipe.function, Compute::F32);
    let tiling = whole_warps.then(|| tiling(recipe));
    let tiling = tiling.and_then(|tiling| checks.sound("threads of rows are a layout", tiling));
    if let Some(tiling) = &tiling {
        checks::proofs(&mut checks, tiling, "threads=256");
    }
    let (map, tiling) = checks.finish(map.zip(tiling))?;
    let (names, output) = names_of(recipe);
    let inputs =
        names.tensors.iter().zip(names.params).zip(&recipe.inputs).map(|((name, param), spec)| Operand {
            param,
            ..Operand::new(name, spec.dtype, Access::Read, &spec.strides)
        });
    let output = Operand::new(output, recipe.out, Access::Write, &[ModeStride::Dynamic]);
    let operands = inputs.chain([output]).collect();
    let smem = tiling.smem_bytes().unwrap_or(Bytes(u64::MAX));
    let sums = RowProgram::new(Passes::reducing(&map, Reduction::Sum));
    let decision = Decision { recipe: recipe.clone(), map, sums, tiling, operands, scalars: names.scalars };
    let draft = Draft {
        operands: decision.operands.clone(),
        rule: decision.rule(),
        params: decision.params(),
        entries: vec![Entry::new(name, decision.tiling.threads(), smem)],
        scalars: recipe.function.scalars().to_vec(),
        problem: Some(problem(recipe.inputs.len())),
        ..Draft::of(recipe, name, targets)
    };
    let facts = vec![
        Fact::new("function", &recipe.function, "of one element of each input, in f32"),
        Fact::new("row", format!("{} threads", decision.group()), "each of n threads adds every n-th element"),
        Fact::new("grid", format!("ceil_div(M,{})", decision.rows()), "rows per block"),
    ];
    // SAFETY: the proofs of its tiling show that a row's threads read each element once, and which of them hold its sum; extents at which coordinates overflow are refused.
    let plan = unsafe { draft.of_tensors().plan(decision) };
    Ok(plan.with_facts(facts))
}

/// Inputs (M,N), sums (M).
fn problem(inputs: usize) -> ProblemShape {
    let modes = core::iter::repeat_n(vec![0, 1], inputs).chain([vec![0]]);
    ProblemShape::new(["M", "N"], modes).agreeing(
        "each row has one sum, over the elements of all inputs",
        "pass views that fit together; a broadcast mode has stride 0, not extent 1",
    )
}

/// What the operands and the scalars are called, and the sums.
fn names_of(recipe: &Sum) -> (Names, &'static str) {
    let output = Names::output(&recipe.function, "Y");
    (Names::new(&[output], &["Sum"], recipe.function.input_names(), &recipe.function), output)
}

/// A step of a block: as many elements of each of its rows as a row has threads, one each. Lanes add up what a warp has, then warps.
fn tiling(recipe: &Sum) -> Result<Tiling, LayoutError> {
    let group = i64::from(if recipe.by == Group::Warp { WARP as u32 } else { recipe.threads });
    let (rows, warps) = (i64::from(recipe.threads) / group, group / WARP as i64);
    let modes = |extents: [i64; 2]| {
        Layout::from_modes([Layout::mode_of(extents[0], extents[1])?, Layout::mode_of(extents[1], 1)?])
    };
    let (threads, values) = (modes([rows, group])?, modes([1, 1])?);
    let load = |(name, spec): (&'static str, &TensorSpec)| TileCopy {
        name,
        what: "load of an input",
        tile: [rows, group],
        dtype: spec.dtype,
        from: Place::Global(Global { align: spec.dtype.bytes(), ..Global::matrix(name) }),
        to: Place::Threads,
        engine: Engine::Threads {
            op: CopyOp::Universal(spec.dtype.bytes()),
            threads: threads.clone(),
            values: values.clone(),
        },
        guard: Guard::Elements,
        completes: Completion::Program,
        split: None,
    };
    let of_warps = SmemTensor {
        name: "Sum",
        modes: "(1,WARPS)",
        dtype: DType::F32,
        swizzle: None,
        layout: modes([1, warps])?,
        align: DType::F32.bytes(),
        proxy: Proxy::Generic,
        lives: Lives::Kernel,
    };
    let copies: Vec<TileCopy> = names_of(recipe).0.tensors.into_iter().zip(&recipe.inputs).map(load).collect();
    let sum = copies.first().map(|first| TileReduce {
        what: "sum of a row",
        of: Reduced::Copied(first.name),
        mode: 1,
        op: ReduceOp::Sum,
        over: [Scope::Lanes].into_iter().chain((warps > 1).then_some(Scope::Warps("Sum"))).collect(),
    });
    Ok(Tiling {
        tile: [rows, group, 1],
        smem: if warps > 1 { vec![of_warps] } else { Vec::new() },
        pipelines: Vec::new(),
        copies,
        mmas: Vec::new(),
        reduces: sum.into_iter().collect(),
        roles: vec![Role { task: Task::All, threads: recipe.threads, registers: None }],
        cluster: [1; 3],
        order: Order::numbered(&[("m", rows)], Some(("n", group))),
    })
}

/// The tests for everything that is not a valid recipe: whether its threads are whole warps.
fn refuse(recipe: &Sum, checks: &mut Checks) -> bool {
    let (found, of) = (recipe.inputs.len(), recipe.function.inputs());
    if found != of || !(1..=MAX_INPUTS).contains(&found) || recipe.function.outputs() != 1 {
        let (found, required) = (format!("{found} inputs, `{}`", recipe.function), "1 to 8 inputs, and one output");
        let because = "each input of the function reads one matrix, and each row has one sum";
        checks.push(
            Code::TensorCount,
            found,
            required.into(),
            because,
            "list as many in `in`: expr=a in=f32:(?,1)".into(),
        );
    }
    for (name, spec) in names_of(recipe).0.tensors.iter().zip(&recipe.inputs) {
        if spec.strides.len() != 2 || spec.strides == [ModeStride::Unit; 2] {
            let (found, required) = (format!("{name} = {spec}"), "two modes, at most one of stride 1");
            let because = "a matrix has rows and columns; only a broadcast one may repeat elements";
            checks.push(Code::TensorRank, found, required.into(), because, "in=f32:(?,1)".into());
        }
    }
    let whole_warps =
        recipe.threads.is_multiple_of(WARP as u32) && (1..=Arch::MAX_THREADS).contains(&recipe.threads.into());
    if !whole_warps {
        let (found, required) = (format!("{} threads", recipe.threads), "a multiple of 32, up to 1024");
        checks.push(Code::ThreadCount, found, required.into(), "whole warps add up a row", "threads=256".into());
    }
    whole_warps
}

fn params(operands: &[Operand], scalars: &[String]) -> ParamStruct {
    let inputs = operands.len() - 1;
    let output = &operands[inputs].param;
    let names = || operands[..inputs].iter().map(|operand| operand.param.clone()).enumerate();
    let stride = |(name, doc): (String, &str), tensor, mode| {
        (name, ParamType::I64, doc.to_owned(), Given::Stride { tensor, mode })
    };
    let input = |(tensor, name)| (name, ParamType::ConstPtr, "an input, (M,N)".to_owned(), Given::Address { tensor });
    let mut fields: Vec<Field> = names().map(input).collect();
    fields.push((output.clone(), ParamType::MutPtr, "the sums, (M)".into(), Given::Address { tensor: inputs }));
    for (mode, (word, doc)) in
        [("ld", "elements from one row to the next"), ("inc", "elements from one column to the next")]
            .into_iter()
            .enumerate()
    {
        fields.extend(names().map(|(tensor, name)| stride((format!("{word}{name}"), doc), tensor, mode)));
    }
    fields.push(stride((format!("inc{output}"), "elements from one sum to the next"), inputs, 0));
    let extents = ["m", "n"].into_iter().enumerate();
    fields.extend(extents.map(|(mode, name)| {
        (name.to_owned(), ParamType::I32, "an extent".to_owned(), Given::Extent { tensor: 0, mode })
    }));
    fields.extend(scalars.iter().enumerate().map(|(index, name)| {
        (name.clone(), ParamType::F32, "run-time scalar of the function".to_owned(), Given::Scalar(index))
    }));
    ParamStruct::new(fields)
}

#[cfg(feature = "emit")]
#[derive(Template)]
#[template(path = "sum.cuh")]
struct Header<'a> {
    banner: String,
    plan: &'a Plan,
    d: &'a Decision,
    /// The sums.
    y: &'a Operand,
    helpers: String,
    functor: String,
    /// `params.alpha, params.beta`.
    scalars: String,
    inputs: Vec<Input>,
    /// Warps of a row.
    warps: i64,
}

/// An input as the template names it.
#[cfg(feature = "emit")]
struct Input {
    name: &'static str,
    param: String,
    dtype: DType,
    /// Its stride along N.
    stride_n: String,
}

#[cfg(feature = "emit")]
impl Input {
    fn new(operand: &Operand) -> Self {
        let Operand { name, param, dtype, strides, .. } = operand;
        let stride_n = match strides.get(1) {
            Some(ModeStride::Unit) => "_1{}".to_owned(),
            Some(ModeStride::Broadcast) => "_0{}".to_owned(),
            _ => format!("params.inc{param}"),
        };
        Self { name, param: param.clone(), dtype: *dtype, stride_n }
    }
}

#[cfg(feature = "emit")]
impl Header<'_> {
    /// The function's arguments: the inputs at a coordinate, in f32.
    fn arguments(&self, prefix: &str, crd: &str) -> String {
        let one = |t: &Input| Helpers::new(Compute::F32).load(t.dtype, &format!("{prefix}{}{crd}", t.name));
        self.inputs.iter().map(one).collect::<Vec<_>>().join(", ")
    }

    /// The sum in its type.
    fn result(&self, sum: &str) -> String {
        Helpers::new(Compute::F32).store(self.d.recipe.out, sum)
    }
}

impl Decision {
    fn params(&self) -> ParamStruct {
        params(&self.operands, &self.scalars)
    }

    /// The sums.
    #[cfg(feature = "emit")]
    fn output(&self) -> &Operand {
        &self.operands[self.operands.len() - 1]
    }

    /// Threads of a row.
    fn group(&self) -> i64 {
        self.tiling.tile[1]
    }

    fn rule(&self) -> Rule {
        let reach = Reach {
            required: format!("extents of at most {}", self.most()),
            because: "coordinates are 32-bit integers; offsets are 64-bit".into(),
            help: "launch on parts of the matrices".into(),
        };
        let mut rule = Rule::new(&self.params(), reach);
        let [m, n] = ["m", "n"].map(|name| rule.param(name));
        for extent in [&m, &n] {
            rule.steps.require(extent.clone().at_most(self.most()), "coordinates are 32-bit integers");
        }
        let blocks = self.tiling.order.extents(&self.tiling.order.pieces, |name| rule.param(name));
        rule.grid(Int::from(0).less(m), blocks);
        rule
    }

    /// The largest extent whose coordinates, those past the end too, are 32-bit integers.
    fn most(&self) -> i64 {
        i64::from(i32::MAX) - i64::from(self.recipe.threads)
    }

    /// Rows of a block.
    fn rows(&self) -> i64 {
        self.tiling.tile[0]
    }
}

impl KernelPlan for Decision {
    #[cfg(feature = "emit")]
    fn header(&self, plan: &Plan) -> String {
        let mut helpers = Helpers::new(Compute::F32);
        let functor = self.map.functor("Op", &mut helpers);
        for spec in &self.recipe.inputs {
            helpers.load(spec.dtype, "");
        }
        helpers.store(self.recipe.out, "");
        let scalars: Vec<String> = self.scalars.iter().map(|s| format!("params.{s}")).collect();
        emit::text(&Header {
            banner: emit::banner(plan, "sum.cuh"),
            plan,
            d: self,
            helpers: helpers.to_string(),
            functor,
            scalars: scalars.join(", "),
            y: self.output(),
            inputs: self.operands.iter().filter(|operand| operand.access == Access::Read).map(Input::new).collect(),
            warps: self.group() / WARP as i64,
        })
    }

    fn reference(&self) -> Option<&dyn Reference> {
        Some(&self.sums)
    }

    fn predict(&self, views: &[ViewRef]) -> Option<Prediction> {
        let y = views.last()?;
        let operands = views.iter().zip(&self.operands);
        let traffic = operands.map(|(view, operand)| Traffic::along_rows(operand.name, view)).collect();
        let blocks = y.layout.size()?.div_ceil(self.rows().unsigned_abs());
        Some(Prediction { traffic, blocks, threads: self.recipe.threads, work: None })
    }
}
