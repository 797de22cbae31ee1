//! The text: its joining template with the values of the tiling.

use askama::Template;

use super::decide::Decision;
use super::score::{emptied, is_of_rows};
use super::{Attention, Isa, Mask, Own};
use crate::emit::{self, Alias, Assertion};
use crate::expr::{Checked, Compute, Helpers};
use crate::plan::{ModeStride, Operand, Plan};
use crate::tiling::{Arrivals, Lives, SmemTensor, Task, Tiling};

/// What the parts of a text share.
struct Common<'a> {
    banner: String,
    plan: &'a Plan,
    recipe: &'a Attention,
    own: &'a Own,
    /// Those of CUTLASS and CuTe that `cute/tensor.hpp` does not include.
    headers: Vec<&'static str>,
    /// The types of elements.
    elements: Vec<Alias>,
    /// Elements of a row of Q and K, and of V and O, as types.
    head: String,
    value: String,
    /// Whether keys of a window are seen.
    window: bool,
    threads: u32,
    smem_bytes: u64,
    align: u64,
    aliases: Vec<Alias>,
    assertions: Vec<Assertion>,
    tensors: &'a [SmemTensor],
    rows: Vec<Rows>,
    fragments: Fragments,
    keys: Keys,
    found: Found,
    score: Option<Score>,
}

/// What TMA copies of K and V for a step.
#[derive(Template)]
enum Keys {
    /// The rows that lie one after the other.
    #[template(path = "attention/keys_rows.cuh")]
    InRows,
    /// A box for each page of it.
    #[template(path = "attention/keys_pages.cuh")]
    InPages,
}

/// The work that a tile of a sequence is.
#[derive(Template)]
enum Found {
    #[template(path = "attention/found.cuh")]
    InRows,
    #[template(path = "attention/found_table.cuh")]
    InPages,
    /// Of a split.
    #[template(path = "attention/found_pages.cuh")]
    OfSplit,
}

/// How warps that copy get fragments of Q, K and V.
#[derive(Template)]
enum Fragments {
    /// As they lie in shared memory.
    #[template(path = "attention/fragments.cuh")]
    Loaded,
    /// Those of K and V become 16 bits.
    #[template(path = "attention/fragments_narrow.cuh")]
    Widened,
}

/// The function of scores, and the tensors that it reads.
struct Score {
    helpers: String,
    /// The structs that say which steps it empties; empty where it empties none.
    emptied: String,
    functor: String,
    scalars: String,
    aux: Vec<Aux>,
}

struct Aux {
    is: Operand,
    element: &'static str,
    /// `make_stride(_0{}, params.bias_stride1, _0{}, _1{})`.
    strides: String,
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
#[template(path = "attention/pages.cuh")]
struct Pages<'a> {
    c: Common<'a>,
    /// Steps of a split.
    steps: String,
    /// Columns of a row that is combined, and warps that share its splits.
    columns: i64,
    warps: i64,
    /// The score of a head that has no value.
    sink: &'static str,
}

#[derive(Template)]
#[template(path = "attention/sm90a.cuh")]
struct Sm90a<'a> {
    c: Common<'a>,
    /// How many arrivals complete each ring's barriers.
    arrivals: Arrivals,
    pingpong: bool,
    /// Registers of the producer and of consumers; 0 where setmaxnreg is not used.
    registers: [u32; 2],
}

impl Common<'_> {
    /// The tensors in shared memory that live for so long.
    fn living(&self, lives: Lives) -> impl Iterator<Item = &SmemTensor> {
        self.tensors.iter().filter(move |tensor| tensor.lives == lives)
    }

    /// The type of a tensor's elements, as the text calls it.
    fn stored(&self, tensor: &str) -> &'static str {
        if self.recipe.is_narrow() && matches!(tensor, "K" | "V") { "Stored" } else { "Element" }
    }

    /// The function of scores, if it empties steps.
    fn emptied(&self) -> Option<&Score> {
        self.score.as_ref().filter(|score| !score.emptied.is_empty())
    }

    /// The number of a step: in a loop over all, or in a walk over those that are not empty.
    fn step<'s>(&self, of_all: &'s str, of_walk: &'s str) -> &'s str {
        if self.emptied().is_some() { of_walk } else { of_all }
    }

    /// The heads of a tile, as a range.
    fn heads(&self) -> &'static str {
        if self.splits() { "work.q.head, work.q.head + work.group - 1" } else { "work.q.head" }
    }

    fn splits(&self) -> bool {
        self.recipe.splits(self.own.isa)
    }

    /// The most keys of a sequence in pages.
    fn most(&self) -> &'static str {
        match self.recipe.aux.is_empty() {
            true => "params.entries * params.page",
            false => "cute::min(params.entries * params.page, params.keys)",
        }
    }

    /// The keys of a batch.
    fn len_k(&self) -> &'static str {
        if self.recipe.paged { "keys_of(params, batch)" } else { "params.sk" }
    }

    /// Whether the last step may have keys of others.
    fn shares_steps(&self) -> &'static str {
        if self.recipe.paged { "true" } else { "Work::packed" }
    }

    /// The keys of a page, and of a box.
    fn page(&self) -> String {
        emit::int(self.recipe.page.unwrap_or(0).into())
    }

    fn part(&self) -> String {
        emit::int(self.recipe.box_of(self.own.tile[1]).unwrap_or(0))
    }

    /// Where a row of O, or its logarithm, lies.
    fn row_of(&self, param: &str) -> String {
        let batch = if self.recipe.varlen { String::new() } else { format!("get<2>(crd) * params.{param}_batch + ") };
        format!("{batch}get<1>(crd) * params.{param}_row + head * params.{param}_head")
    }

    /// The parameters of a work.
    fn params(&self) -> &'static str {
        if self.recipe.is_narrow() { "scaled(params, work)" } else { "params" }
    }

    /// An element of O from the weighted sum of elements of V.
    fn of_values(&self, sum: &str) -> String {
        if self.recipe.is_narrow() { format!("__fmul_rn({sum}, of_values)") } else { sum.to_owned() }
    }
}

impl Score {
    fn new(recipe: &Attention, score: &Checked) -> Self {
        let mut helpers = Helpers::new(Compute::F32);
        let functor = score.functor("Op", &mut helpers);
        let emptied = emptied(score).map(|emptied| emptied.functor("Empties", &mut helpers));
        let aux = recipe.aux_operands().into_iter().map(|is| {
            helpers.load(is.dtype, "");
            Aux { strides: strides(&is), element: emit::element(is.dtype), is }
        });
        let aux = aux.collect();
        let scalars = recipe.names().scalars.iter().map(|name| format!("params.{name}")).collect::<Vec<_>>();
        let (helpers, scalars) = (helpers.to_string(), scalars.join(", "));
        Self { helpers, emptied: emptied.unwrap_or_default(), functor, scalars, aux }
    }

    /// The tensors whose element is the same for all keys of a row.
    fn of_rows(&self) -> impl Iterator<Item = &Aux> {
        self.aux.iter().filter(|aux| aux.is_of_rows())
    }

    /// The function's arguments behind the places, in f32.
    fn arguments(&self) -> String {
        let argument = |aux: &Aux| match aux.is_of_rows() {
            true => format!(", row{}(row)", aux.is.name),
            false => format!(", {}", aux.at("(h,q,k)")),
        };
        self.aux.iter().map(argument).collect()
    }
}

impl Aux {
    fn is_of_rows(&self) -> bool {
        is_of_rows(&self.is.strides)
    }

    /// The element at this coordinate, in f32.
    fn at(&self, coordinate: &str) -> String {
        Helpers::new(Compute::F32).load(self.is.dtype, &format!("m{}{coordinate}", self.is.name))
    }
}

fn strides(of: &Operand) -> String {
    let stride = |(mode, stride): (usize, &ModeStride)| match stride {
        ModeStride::Unit => "_1{}".to_owned(),
        ModeStride::Broadcast => "_0{}".to_owned(),
        ModeStride::Dynamic => format!("params.{}_stride{mode}", of.param),
    };
    format!("make_stride({})", of.strides.iter().enumerate().map(stride).collect::<Vec<_>>().join(", "))
}

fn rows(recipe: &Attention, operand: &Operand) -> Rows {
    let along = usize::from(operand.name == "V");
    let (keys, elements) = (operand.name != "Q", ["Head{}", "Value{}"][along].to_owned());
    let [b, sq, sk, hq, hk] = recipe.extents().map(|extent| format!("params.{}", extent.to_lowercase()));
    let (in_pages, [page, pages]) = (keys && recipe.paged, ["page", "pages"].map(|of| format!("params.{of}")));
    let (rows, heads) = if in_pages {
        (page, hk)
    } else if keys {
        (sk, hk)
    } else {
        (sq, hq)
    };
    let tile = if along == 0 { [rows, elements] } else { [elements, rows] };
    let batches = if in_pages { Some(pages) } else { (!recipe.varlen).then_some(b) };
    let modes: Vec<String> = tile.into_iter().chain([heads]).chain(batches).collect();
    let shape = format!("make_shape({})", modes.join(", "));
    Rows { name: operand.name, param: operand.param.clone(), along, shape }
}

/// The types of elements: those of Q and O, and of K and V where they are narrower.
fn elements(recipe: &Attention) -> Vec<Alias> {
    let element = emit::element(recipe.dtype).to_owned();
    match recipe.is_narrow() {
        false => vec![Alias::new("Element", element, "Q, K, V and O")],
        true => {
            vec![Alias::new("Element", element, "Q and O"), Alias::new("Stored", "float_e4m3_t".to_owned(), "K and V")]
        }
    }
}

/// The headers of a text.
fn headers(decision: &Decision) -> Vec<&'static str> {
    let Decision { recipe, own, tiling, .. } = decision;
    let converts = recipe.is_narrow().then_some("cutlass/numeric_conversion.h");
    let divides = recipe.paged.then_some("cutlass/fast_math.h");
    match own.isa {
        Isa::Sm80 => converts.into_iter().chain(divides).collect(),
        Isa::Sm90a => tiling.headers().to_vec(),
    }
}

fn registers(tiling: &Tiling, task: Task) -> u32 {
    tiling.roles.iter().find(|role| role.task == task).and_then(|role| role.registers).unwrap_or(0)
}

pub(super) fn header(decision: &Decision, score: &Checked, plan: &Plan) -> String {
    let Decision { recipe, own, tiling, combine, smem, .. } = decision;
    let all = || core::iter::once(tiling).chain(combine);
    let path = match own.isa {
        _ if recipe.splits(own.isa) => "attention/pages.cuh",
        Isa::Sm80 => "attention/sm80.cuh",
        Isa::Sm90a => "attention/sm90a.cuh",
    };
    let c = Common {
        banner: emit::banner(plan, path),
        plan,
        recipe,
        own,
        headers: headers(decision),
        elements: elements(recipe),
        head: emit::int(recipe.head.into()),
        value: emit::int(recipe.value().into()),
        window: recipe.mask == Mask::Window,
        threads: tiling.threads(),
        smem_bytes: smem.0,
        align: tiling.smem.iter().map(|tensor| tensor.align.0).max().unwrap_or(16),
        aliases: all().flat_map(Tiling::aliases).collect(),
        assertions: all().flat_map(Tiling::assertions).collect(),
        tensors: &tiling.smem,
        rows: plan.operands().iter().take(3).map(|operand| rows(recipe, operand)).collect(),
        fragments: if recipe.is_narrow() { Fragments::Widened } else { Fragments::Loaded },
        keys: if recipe.paged { Keys::InPages } else { Keys::InRows },
        found: match recipe.paged {
            _ if recipe.splits(own.isa) => Found::OfSplit,
            true => Found::InPages,
            false => Found::InRows,
        },
        score: recipe.is_scored().then(|| Score::new(recipe, score)),
    };
    let of_split = |split| (i64::from(split) / own.tile[1]).to_string();
    let of_head = "__fmul_rn(static_cast<float const*>(params.sinks)[head], 1.44269504088896f)";
    match own.isa {
        _ if recipe.splits(own.isa) => emit::text(&Pages {
            c,
            steps: recipe.split.map_or_else(|| "params.steps".to_owned(), of_split),
            columns: combine.as_ref().map_or(0, |combine| combine.tile[1]),
            warps: super::tilings::WARPS,
            sink: if recipe.sinks { of_head } else { "-INFINITY" },
        }),
        Isa::Sm80 => emit::text(&Sm80 { c }),
        Isa::Sm90a => emit::text(&Sm90a {
            c,
            arrivals: tiling.arrivals(&tiling.pipelines[0]),
            pingpong: own.pingpong,
            registers: [Task::Produce, Task::Consume].map(|task| registers(tiling, task)),
        }),
    }
}
