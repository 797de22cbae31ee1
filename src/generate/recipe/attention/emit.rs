//! The text: its joining template with the values of the tiling.

use askama::Template;

use super::decide::Decision;
use super::{Attention, Isa, Mask};
use crate::dtype::DType;
use crate::emit::{self, Alias, Assertion};
use crate::plan::{Operand, Plan};
use crate::tiling::{Arrivals, Lives, SmemTensor, Task, Tiling};
use crate::units::Bytes;

/// What the parts of a text share.
struct Common<'a> {
    banner: String,
    plan: &'a Plan,
    element: &'static str,
    /// Elements of a row of Q and K, and of V and O, as types.
    head: String,
    value: String,
    /// Whether keys behind a query are not seen, and whether those of a window are.
    diagonal: bool,
    window: bool,
    varlen: bool,
    /// What sequences are apart, among the strides.
    apart: &'static str,
    lse: bool,
    /// Two weights in a register, as PTX spells them.
    pair: &'static str,
    threads: u32,
    smem_bytes: u64,
    align: u64,
    aliases: Vec<Alias>,
    assertions: Vec<Assertion>,
    tensors: Vec<Shared>,
    rows: Vec<Rows>,
}

/// An array in shared memory.
struct Shared {
    name: &'static str,
    param: String,
    align: Bytes,
    lives: Lives,
}

/// An input with rows of a head.
struct Rows {
    name: &'static str,
    param: String,
    /// The mode of its tiles that rows lie along.
    along: usize,
    /// Its shape: its tiles' modes, then heads and batches.
    shape: String,
}

#[derive(Template)]
#[template(path = "attention/sm80.cuh")]
struct Sm80<'a> {
    c: Common<'a>,
}

#[derive(Template)]
#[template(path = "attention/sm90a.cuh")]
struct Sm90a<'a> {
    c: Common<'a>,
    /// The macro that CuTe needs before its headers.
    wants: Option<&'static str>,
    /// What barriers wait for; the warps are those of each ring.
    arrivals: Arrivals,
    pingpong: bool,
    /// Of the producer and of consumers, 0 for those of the launch.
    registers: [u32; 2],
}

impl Common<'_> {
    fn living(&self, lives: Lives) -> impl Iterator<Item = &Shared> {
        self.tensors.iter().filter(move |tensor| tensor.lives == lives)
    }

    fn kept(&self) -> impl Iterator<Item = &Shared> {
        self.living(Lives::Kernel)
    }

    fn staged(&self) -> impl Iterator<Item = &Shared> {
        self.living(Lives::Mainloop)
    }

    fn lent(&self) -> impl Iterator<Item = &Shared> {
        self.living(Lives::Epilogue)
    }

    fn lends(&self) -> bool {
        self.lent().count() > 0
    }

    fn reads(&self) -> &[Rows] {
        &self.rows
    }
}

fn rows(recipe: &Attention, operand: &Operand) -> Rows {
    let along = usize::from(operand.name == "V");
    let (keys, elements) = (operand.name != "Q", ["Head{}", "Value{}"][along].to_owned());
    let [b, sq, sk, hq, hk] = recipe.extents().map(|extent| format!("params.{}", extent.to_lowercase()));
    let (rows, heads) = if keys { (sk, hk) } else { (sq, hq) };
    let tile = if along == 0 { [rows, elements] } else { [elements, rows] };
    let batches = (!recipe.varlen).then_some(b);
    let modes: Vec<String> = tile.into_iter().chain([heads]).chain(batches).collect();
    Rows { name: operand.name, param: operand.param.clone(), along, shape: format!("make_shape({})", modes.join(", ")) }
}

fn shared(tensor: &SmemTensor) -> Shared {
    Shared { name: tensor.name, param: tensor.name.to_lowercase(), align: tensor.align, lives: tensor.lives }
}

fn registers(tiling: &Tiling, task: Task) -> u32 {
    tiling.roles.iter().find(|role| role.task == task).and_then(|role| role.registers).unwrap_or(0)
}

pub(super) fn header(decision: &Decision, plan: &Plan) -> String {
    let Decision { recipe, own, tiling, smem, .. } = decision;
    let path = match own.isa {
        Isa::Sm80 => "attention/sm80.cuh",
        Isa::Sm90a => "attention/sm90a.cuh",
    };
    let c = Common {
        banner: emit::banner(plan, path),
        plan,
        element: emit::element(recipe.dtype),
        head: emit::int(recipe.head.into()),
        value: emit::int(recipe.value().into()),
        diagonal: recipe.has_diagonal(),
        window: recipe.mask == Mask::Window,
        varlen: recipe.varlen,
        apart: recipe.apart(),
        lse: recipe.lse,
        pair: if recipe.dtype == DType::Bf16 { "bf16x2" } else { "f16x2" },
        threads: tiling.threads(),
        smem_bytes: smem.0,
        align: tiling.smem.iter().map(|tensor| tensor.align.0).max().unwrap_or(16),
        aliases: tiling.aliases(),
        assertions: tiling.assertions(),
        tensors: tiling.smem.iter().map(shared).collect(),
        rows: plan.operands().iter().take(3).map(|operand| rows(recipe, operand)).collect(),
    };
    match own.isa {
        Isa::Sm80 => emit::text(&Sm80 { c }),
        Isa::Sm90a => emit::text(&Sm90a {
            c,
            wants: tiling.mmas.iter().find_map(|mma| mma.tiled().ok()?.atom().wants_macro()),
            arrivals: tiling.arrivals(&tiling.pipelines[0]),
            pingpong: own.pingpong,
            registers: [Task::Produce, Task::Consume].map(|task| registers(tiling, task)),
        }),
    }
}
