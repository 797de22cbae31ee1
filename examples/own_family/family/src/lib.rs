//! A kernel family of its own: a gated activation whose output is quantised in groups of 128 columns.
//!
//! `H = silu(Gate) * Up`; `S` is the largest `|H|` of a group divided by 448, the largest e4m3, or 1 where that is 0; `Q = H / S`
//! in e4m3. All matrices are row-major.

mod reference;

use askama::Template;
use cutemplate::arch::Targets;
use cutemplate::diagnostic::PlanError;
use cutemplate::dtype::DType;
use cutemplate::emit::{self, Alias, Assertion};
use cutemplate::expr::{Compute, Helpers};
use cutemplate::layout::{Layout, LayoutError};
use cutemplate::plan::checks::{self, Checks};
use cutemplate::plan::{
    Draft, Entry, Fact, Int, KernelPlan, ModeStride, Operand, ParamStruct, Plan, ProblemShape, Reach, Reference, Rule,
};
use cutemplate::recipe;
use cutemplate::recipe::{OfTensors, Recipe};
use cutemplate::settings::Setting;
use cutemplate::tiling::{
    Axis, Completion, CopyOp, Engine, Global, Guard, Order, Place, ReduceOp, Reduced, Role, Scope, Task, TileCopy,
    TileReduce, Tiling,
};
use cutemplate::units::Bytes;
use cutemplate::view::Access;

/// Columns with one scale.
pub const GROUP: i64 = 128;
/// Elements that a lane has of a group.
const VECTOR: i64 = GROUP / 32;

recipe! {
    /// Gate and Up `(M,N):(?,1)` in a type of 16 bits, Q `(M,N):(?,1)` in e4m3, S `(M,N/128):(?,1)` in f32.
    pub struct Gated |this| {
        /// type of the inputs: f16, bf16
        dtype: DType, "bf16";
        /// rows of a CTA, each of a warp, 1 to 32
        rows: u32, "8";
    }
}

impl Default for Gated {
    fn default() -> Self {
        Self { dtype: DType::F16, rows: 8 }
    }
}

impl OfTensors for Gated {}

impl Recipe for Gated {
    const FAMILY: &'static str = "gated";
    const RUST_TYPE: &'static str = "gated_family::Gated";
    const SUMMARY: &'static str = "silu(gate) * up, quantised to e4m3 in groups of 128 columns";
    const SETTINGS: &'static [Setting] = SETTINGS;
    const CATALOGUE: &'static [&'static str] = &["", "dtype=bf16\nrows=4"];
    const PROBLEM: &'static [i64] = &[16384, 4096];

    fn default_name(&self) -> String {
        format!("{}_{}", Self::FAMILY, self.dtype)
    }

    fn plan_as(&self, name: &str, targets: &Targets) -> Result<Plan, PlanError> {
        let mut checks = Checks::new(&format!("{self:?}"), targets);
        checks::kernel_name(&mut checks, name);
        checks::thread_count(&mut checks, 32 * i64::from(self.rows), "rows=8");
        let is_half = matches!(self.dtype, DType::F16 | DType::Bf16);
        let (found, because) = (format!("dtype={}", self.dtype), "a lane loads four elements of a group as 8 bytes");
        checks.require(is_half, CODE, found, "f16 or bf16", because, "dtype=bf16");
        let tiling = checks.sound("extents are positive", tiling(self));
        if let Some(tiling) = tiling.as_ref().filter(|_| is_half) {
            checks::proofs(&mut checks, tiling, "report it to the authors of gated_family");
        }
        let decision = tiling.map(|tiling| Decision { recipe: self.clone(), reference: reference::gated(), tiling });
        let decision = checks.finish(decision)?;
        let facts = Fact::of_tiling(&decision.tiling);
        // SAFETY: the proofs show that each element of a tile belongs to one thread. The text skips rows past the end. The rule
        // refuses columns that do not make whole groups, and addresses that are not aligned to vectors.
        Ok(unsafe { draft(self, name, targets).of_tensors().plan(decision) }.with_facts(facts))
    }
}

const CODE: cutemplate::diagnostic::Code = cutemplate::diagnostic::Code::Family;

#[derive(Debug)]
struct Decision {
    recipe: Gated,
    tiling: Tiling,
    reference: cutemplate::reference::Each,
}

/// A CTA's part: `rows` groups, each of a warp, 4 columns a lane.
fn tiling(recipe: &Gated) -> Result<Tiling, LayoutError> {
    let rows = i64::from(recipe.rows);
    let threads: Layout = format!("({rows},32):(32,1)").parse()?;
    let values: Layout = format!("(1,{VECTOR}):(0,1)").parse()?;
    let row_major = |name: &'static str, dtype: DType| {
        let align = Bytes(dtype.bytes().0 * VECTOR.unsigned_abs());
        Place::Global(Global { align, multiple: GROUP, ..Global::matrix(name) })
    };
    let copy = |name, what, dtype: DType, from, to| TileCopy {
        name,
        what,
        tile: [rows, GROUP],
        dtype,
        from,
        to,
        engine: Engine::Threads {
            op: CopyOp::Universal(Bytes(dtype.bytes().0 * VECTOR.unsigned_abs())),
            threads: threads.clone(),
            values: values.clone(),
        },
        guard: Guard::Predicate,
        completes: Completion::Program,
        split: None,
    };
    let [gate, up] = ["Gate", "Up"].map(|name| row_major(name, recipe.dtype));
    let output = row_major("Q", DType::E4m3);
    Ok(Tiling {
        tile: [rows, GROUP, 1],
        smem: Vec::new(),
        pipelines: Vec::new(),
        copies: vec![
            copy("LoadGate", "load of Gate", recipe.dtype, gate, Place::Threads),
            copy("LoadUp", "load of Up", recipe.dtype, up, Place::Threads),
            copy("StoreQ", "store of Q", DType::E4m3, Place::Threads, output),
        ],
        mmas: Vec::new(),
        reduces: vec![TileReduce {
            what: "largest of a group",
            of: Reduced::Copied("LoadGate"),
            mode: 1,
            op: ReduceOp::Max,
            over: vec![Scope::Lanes],
        }],
        roles: vec![Role { task: Task::All, threads: 32 * recipe.rows, registers: None }],
        cluster: [1; 3],
        order: order(rows),
    })
}

/// A CTA for each group of columns of so many rows: the block's number along x is that of the rows, along y that of the group.
fn order(rows: i64) -> Order {
    let (mut order, [m, n], [x, y]) = Order::new([("m", rows), ("n", GROUP)], ["x", "y"]);
    let axes = [Axis { at: x, extent: m.ceil_div(rows) }, Axis { at: y, extent: n.ceil_div(GROUP) }];
    order.pieces = axes.to_vec();
    order.tile = axes.to_vec();
    order
}

/// What a launch needs.
fn draft(recipe: &Gated, name: &str, targets: &Targets) -> Draft {
    let rows = [ModeStride::Dynamic, ModeStride::Unit];
    let operands = vec![
        Operand::new("Gate", recipe.dtype, Access::Read, &rows),
        Operand::new("Up", recipe.dtype, Access::Read, &rows),
        Operand::new("Q", DType::E4m3, Access::Write, &rows),
        Operand::new("S", DType::F32, Access::Write, &rows),
    ];
    let shape = ProblemShape::new(["M", "N"], vec![vec![0, 1]; 4]).with_groups(3, 1, GROUP).with_example(&[67, 384]);
    let params = ParamStruct::of(&operands, &shape, &[]);
    Draft {
        rule: rule(recipe, &params),
        problem: Some(shape),
        entries: vec![Entry::new(name, 32 * recipe.rows, Bytes(0))],
        operands,
        params,
        ..Draft::of(recipe, name, targets)
    }
}

/// Whole groups at addresses that are multiples of a vector; a row of blocks for each group.
fn rule(recipe: &Gated, params: &ParamStruct) -> Rule {
    let mut rule = Rule::new(
        params,
        Reach {
            required: format!("a multiple of {GROUP} columns, rows at multiples of a vector, at most 2^31 - 1024 rows"),
            because: format!("a lane loads and stores {VECTOR} neighbours at once, and a warp has a whole group"),
            help: format!("pad the matrices to a multiple of {GROUP} columns"),
        },
    );
    let [m, n] = ["m", "n"].map(|extent| rule.param(extent));
    rule.steps.require(n.clone().divides_by(GROUP), "groups are whole");
    rule.steps.require(m.clone().at_most(i64::from(i32::MAX) - 1024), "coordinates are 32-bit integers");
    for (operand, bytes) in [("gate", 2), ("up", 2), ("q", 1)] {
        let [address, stride] = [operand.to_owned(), format!("{operand}_stride0")].map(|name| rule.param(&name));
        rule.steps.require(address.divides_by(bytes * VECTOR), "vectors are aligned");
        // The stride of a single row is never used.
        let one = m.clone().at_most(1);
        rule.steps.require(one.op(cutemplate::plan::IntOp::Or, stride.divides_by(VECTOR)), "rows are aligned");
    }
    let order = order(i64::from(recipe.rows));
    let blocks = order.extents(&order.pieces, |name| rule.param(name));
    rule.grid(Int::from(0).less(m).and(Int::from(0).less(n)), blocks);
    rule
}

#[derive(Template)]
#[template(path = "gated.cuh")]
struct Text<'a> {
    banner: String,
    plan: &'a Plan,
    assert_ieee: &'static str,
    copy_all: &'static str,
    rows: u32,
    vector: i64,
    element: &'static str,
    aliases: Vec<Alias>,
    assertions: Vec<Assertion>,
    load_gate: String,
    load_up: String,
    store_q: String,
    helpers: String,
}

impl KernelPlan for Decision {
    fn header(&self, plan: &Plan) -> String {
        let mut helpers = Helpers::new(Compute::F32);
        let dtype = self.recipe.dtype;
        let [load_gate, load_up] = ["rGate(i)", "rUp(i)"].map(|of| helpers.load(dtype, of));
        let store_q = helpers.store(DType::E4m3, "scaled");
        emit::text(&Text {
            banner: emit::banner(plan, "gated.cuh"),
            plan,
            assert_ieee: emit::ASSERT_IEEE,
            copy_all: emit::COPY_ALL,
            rows: self.recipe.rows,
            vector: VECTOR,
            element: emit::element(dtype),
            aliases: self.tiling.aliases(),
            assertions: self.tiling.assertions(),
            load_gate,
            load_up,
            store_q,
            helpers: helpers.to_string(),
        })
    }

    fn reference(&self) -> Option<&dyn Reference> {
        Some(&self.reference)
    }
}
