//! The text of a part: its joining template with the values of its tilings.

use askama::Template;

use super::budget::{Budget, Warpgroups, Warps};
use super::decide::Part;
use super::tilings::Scales;
use super::{Factors, ScaleType};
use crate::emit;
use crate::emit::{Alias, Assertion};
use crate::expr::Helpers;
use crate::plan::{Groups, Int, Operand, Plan, SCALE_D, SCALED_K, SCALES};
use crate::recipe::Isa;
use crate::recipe::product::{EpilogueText, Tensor, stride_params};
use crate::tiling::{Arrivals, Inner, Lives, SmemTensor, Tiling};
use crate::units::Bytes;

/// The data that the texts of both instruction sets share.
struct Common<'a> {
    banner: String,
    part: &'a Part,
    plan: &'a Plan,
    op: EpilogueText,
    /// A, B, the epilogue inputs, and D.
    operands: Vec<Tensor>,
    threads: u32,
    smem_bytes: u64,
    element: &'static str,
    /// What has that type.
    of_element: &'static str,
    aliases: Vec<Alias>,
    assertions: Vec<Assertion>,
    tensors: Vec<Shared>,
    /// The alignment of shared memory.
    align: u64,
    scales: Vec<ScalesText>,
}

/// The scales of a factor.
struct ScalesText {
    factor: &'static str,
    name: &'static str,
    param: String,
    /// The mode of D that the factor's rows lie along.
    mode: usize,
    granule: i64,
    /// Their last mode, where each matrix has its own.
    modes_l: &'static str,
    /// Of all of them, in global memory.
    shape: String,
    strides: String,
    /// The layout of a stage's by element of D, (BM,BN,STAGES).
    view: String,
}

/// An array in shared memory.
struct Shared {
    name: &'static str,
    param: String,
    align: Bytes,
    ty: &'static str,
    /// Whether it lies where the others do.
    lent: bool,
}

#[derive(Template)]
#[template(path = "gemm/sm80.cuh")]
struct Sm80<'a> {
    c: Common<'a>,
    r: &'a Warps,
}

#[derive(Template)]
#[template(path = "gemm/sm90a.cuh")]
struct Sm90a<'a> {
    c: Common<'a>,
    r: &'a Warpgroups,
    cluster: [u32; 3],
    teams: u32,
    sharing: Sharing,
    /// Those of CuTe that `cute/tensor.hpp` does not include.
    headers: &'static [&'static str],
    /// What barriers wait for.
    arrivals: Arrivals,
}

/// How the consumers of a cluster share tiles.
enum Sharing {
    /// All warpgroups of a CTA compute a tile together.
    Cooperative,
    /// Each warpgroup computes a tile of its own.
    PingPong,
    /// The CTAs of a cluster compute a tile together.
    SplitK,
}

impl Sm90a<'_> {
    /// The epilogue inputs that are prefetched: where the words of a slice begin, and how many there are.
    fn ahead(&self) -> impl Iterator<Item = (&Tensor, &[u64; 2])> {
        self.c.reads().iter().zip(&self.r.ahead)
    }

    /// The others.
    fn read_late(&self) -> &[Tensor] {
        &self.c.reads()[self.r.ahead.len()..]
    }
}

impl Common<'_> {
    fn batched(&self) -> bool {
        self.part.recipe.batched
    }

    fn grouped(&self) -> bool {
        self.part.tiling.order.groups.is_some()
    }

    fn groups(&self) -> Groups {
        self.part.recipe.groups
    }

    /// How many rows of D there are where a tile lies.
    fn rows_d(&self) -> &'static str {
        if self.grouped() { "rows_of(crd_D)" } else { "params.m" }
    }

    /// The rows that tiles of a cluster are counted of.
    fn rows_of_tiles(&self) -> &'static str {
        if self.grouped() { "rows" } else { "params.m" }
    }

    /// The parameter that says where groups end.
    fn ends(&self) -> String {
        self.groups().operand().map_or_else(String::new, str::to_lowercase)
    }

    /// Whether groups lie one after the other.
    fn follow(&self) -> bool {
        self.groups() == Groups::Rows
    }

    /// Whether a warpgroup stores its rows of a slice without the others.
    fn stores_apart(&self) -> &'static str {
        if self.grouped() { "false" } else { "TmaStore" }
    }

    /// Tiles of a cluster in a group of rows.
    fn pieces(&self) -> String {
        self.part.tiling.order.pieces.first().map_or_else(String::new, |pieces| self.of_order(&pieces.extent))
    }

    /// CTAs of a cluster along (M,N).
    fn cluster_type(&self) -> String {
        let [along_m, along_n, _] = self.part.tiling.cluster;
        emit::shape_type([along_m.into(), along_n.into()])
    }

    /// The mode that tiles of a group lie along, and the other.
    fn raster(&self) -> [&'static str; 2] {
        self.part.own.along().modes()
    }

    /// CTAs of a tile, along K.
    fn splits(&self) -> u32 {
        self.part.tiling.splits()
    }

    /// What a cluster computes of the number of a tile, in order: names and values.
    fn order(&self) -> impl Iterator<Item = (&str, String)> {
        self.part.tiling.order.of_piece().into_iter().map(|(name, value)| (name, self.of_order(value)))
    }

    /// The first k-tile of a CTA, and their number.
    fn k_range(&self) -> [String; 2] {
        let Inner { first, trips, .. } = &self.part.tiling.order.inner;
        [first, trips].map(|value| self.of_order(value))
    }

    fn of_order(&self, value: &Int) -> String {
        let name = |name: &String| if name == "group" { "params.group".to_owned() } else { name.clone() };
        let names: Vec<String> = self.part.tiling.order.steps.names.iter().map(name).collect();
        emit::cxx(value, &names)
    }

    /// Whether clusters share tiles along K.
    fn streams_k(&self) -> bool {
        self.part.tiling.streams_k()
    }

    /// The scales of blocks of A and B.
    fn scales(&self) -> &[ScalesText] {
        &self.scales
    }

    /// Whether they are powers of two, a byte each.
    fn has_exponents(&self) -> bool {
        self.part.recipe.scale_type == ScaleType::Ue8m0
    }

    /// The type of a scale in global memory.
    fn scale(&self) -> &'static str {
        self.part.recipe.scale_type.dtype().cxx()
    }

    fn has_scales(&self) -> bool {
        !self.scales.is_empty()
    }

    /// Whether a CTA computes its tile from the turn's number, instead of advancing from the tile before.
    fn finds_anew(&self) -> bool {
        self.part.isa == Isa::Sm80
    }

    /// After how many k-tiles, and elements of K, a sum moves to f32.
    fn promotes(&self) -> Option<[u32; 2]> {
        let promotion = self.part.tiling.mmas.iter().find_map(|mma| mma.promotion.as_ref())?;
        Some([promotion.every, self.part.recipe.promote])
    }

    /// The last mode in the shape of a tensor of all tiles.
    fn modes_l(&self) -> &'static str {
        if self.part.recipe.have_l("B") { ",l" } else { "" }
    }

    /// Whether a box of some factor may have fewer rows than its part of a tile.
    fn cuts(&self) -> bool {
        ["A", "B"].iter().any(|factor| self.part.cuts(factor))
    }

    /// Bytes of a k-tile of a factor that are loaded: a parameter, or all of them.
    fn bytes(&self, factor: &str) -> String {
        let all =
            self.part.tiling.operands().find(|tensor| tensor.name == factor).map_or(0, |tensor| tensor.stage_bytes().0);
        if self.part.cuts(factor) { format!("params.bytes_{}", factor.to_lowercase()) } else { all.to_string() }
    }

    /// Matrices of each operand.
    fn batches(&self) -> &'static str {
        if self.batched() { "params.l" } else { "1" }
    }

    /// Arrays in shared memory of the mainloop.
    fn staged(&self) -> impl Iterator<Item = &Shared> {
        self.tensors.iter().filter(|tensor| !tensor.lent)
    }

    /// Arrays that lie where those did.
    fn lent(&self) -> impl Iterator<Item = &Shared> {
        self.tensors.iter().filter(|tensor| tensor.lent)
    }

    fn factors(&self) -> &[Tensor] {
        &self.operands[..2]
    }

    /// The epilogue inputs, and D.
    fn epilogue(&self) -> impl Iterator<Item = &Tensor> {
        self.reads().iter().chain(self.written())
    }

    fn reads(&self) -> &[Tensor] {
        &self.operands[self.part.recipe.epilogue_inputs(self.operands.len())]
    }

    /// D, and E ahead of it.
    fn written(&self) -> &[Tensor] {
        self.part.recipe.outputs(&self.operands)
    }

    /// The scales of a quantised D.
    fn scale_d(&self) -> Option<&Tensor> {
        self.operands.iter().find(|operand| operand.is.name == SCALE_D)
    }

    /// The type of the epilogue's results.
    fn result(&self, tensor: &Tensor) -> String {
        if self.scale_d().is_some() { self.compute().to_owned() } else { format!("Element{}", tensor.is.name) }
    }

    /// A result of the epilogue: it is an element of D already, unless D is quantised.
    fn given(&self, value: &str) -> String {
        if self.scale_d().is_some() { value.to_owned() } else { self.rounded(value) }
    }

    /// D, and E behind it.
    fn outputs(&self) -> impl Iterator<Item = &Tensor> {
        self.written().iter().rev()
    }

    /// Its number among them.
    fn output_of(&self, tensor: &Tensor) -> usize {
        self.outputs().position(|output| output.is.name == tensor.is.name).unwrap_or_default()
    }

    fn d(&self) -> &Tensor {
        &self.operands[self.operands.len() - 1]
    }

    /// The parameters that hold its strides.
    fn strides(&self, tensor: &Tensor) -> Vec<String> {
        stride_params(&tensor.is).into_iter().flatten().collect()
    }

    /// Shape and strides of a factor as rows along its contiguous mode: `(ROWS,COLUMNS,L)`.
    fn rows(&self, tensor: &Tensor) -> String {
        let [rows, columns] = self.part.rows(tensor.is.name);
        let strides = self.strides(tensor);
        let (l, apart) = match strides.get(1) {
            // One for all is packed once.
            Some(batch) => (format!("params.{batch} == 0 ? 1 : params.l"), format!("params.{batch}")),
            None => ("_1{}".to_owned(), "_0{}".to_owned()),
        };
        let shape = format!("make_shape(params.{rows}, params.{columns}, {l})");
        let (ld, next) = (format!("params.{}", strides[0]), "_1{}".to_owned());
        let [row, column] = if self.turns(tensor) { [next, ld] } else { [ld, next] };
        format!("{shape}, make_stride({row}, {column}, {apart})")
    }

    /// Whether a factor is turned while it is packed.
    fn turns(&self, tensor: &Tensor) -> bool {
        self.part.recipe.turns()[usize::from(tensor.is.name == "B")]
    }

    /// The function that packs it.
    fn packing(&self, tensor: &Tensor) -> &'static str {
        if self.turns(tensor) { "turn_tile" } else { "pack_tile" }
    }

    /// Whether any is turned.
    fn any_turns(&self) -> bool {
        self.part.recipe.turns().contains(&true)
    }

    /// Whether some factor is packed as it lies.
    fn any_packs(&self) -> bool {
        self.part.recipe.turns().contains(&false)
    }

    /// Whether a kernel begins before the one ahead of it has ended.
    fn overlaps(&self) -> bool {
        self.plan.entries().iter().any(|entry| entry.overlaps)
    }

    /// Whether fragments are rounded to tf32.
    fn rounds(&self) -> bool {
        self.part.recipe.dtype == Factors::Tf32 && self.part.isa == Isa::Sm80
    }

    fn epilogue_text(&self) -> String {
        self.part.recipe.epilogue.to_string()
    }

    /// How the matrices lie.
    fn majors(&self) -> String {
        let [a, b] = self.part.recipe.k_major();
        let [l_a, l_b, l_d] = ["A", "B", "D"].map(|name| if self.part.recipe.have_l(name) { ",L" } else { "" });
        let major = |k_major: bool, other| if k_major { "K" } else { other };
        let (a, b) = (major(a, "M"), major(b, "N"));
        let text = format!("A is (M,K{l_a}), {a}-major, B is (N,K{l_b}), {b}-major, D is (M,N{l_d}), N-major");
        let [turns_a, turns_b] = self.part.recipe.turns();
        let turned = [(turns_a, ", A turned from M-major"), (turns_b, ", B turned from N-major")];
        let text = turned.into_iter().filter(|(turns, _)| *turns).fold(text, |text, (_, also)| text + also);
        match self.part.recipe.is_turned() {
            true => text + ", where A and B are the launch's B and A, and D is its transposed D",
            false => text,
        }
    }

    /// The arguments of the epilogue after the accumulator: inputs in registers.
    fn inputs(&self, prefix: &str, index: &str) -> String {
        self.op.converted(&self.operands, prefix, index)
    }

    /// An element of D, or of E with two outputs, from that result.
    fn rounded(&self, value: &str) -> String {
        Helpers::new(self.part.product.epilogue().compute()).store(self.part.recipe.out, value)
    }

    /// The type that the epilogue computes in.
    fn compute(&self) -> &'static str {
        self.part.product.epilogue().compute().cxx()
    }

    /// The type of an accumulator.
    fn sum(&self) -> &'static str {
        self.part.recipe.dtype.sums().cxx()
    }

    /// Four accumulators.
    fn sum4(&self) -> &'static str {
        if self.part.recipe.dtype == Factors::I8 { "int4" } else { "float4" }
    }
}

fn common<'a>(part: &'a Part, plan: &'a Plan, template: &str) -> Common<'a> {
    let tiling = &part.tiling;
    // The aliases and assertions of the other entries.
    let (mut aliases, mut assertions) = (tiling.aliases(), tiling.assertions());
    for other in part.direct.iter().chain([&part.pack]).chain(part.stream_k.iter().flatten()) {
        let new = |alias: &Alias| aliases.iter().all(|known: &Alias| known.name != alias.name);
        let more: Vec<Alias> = other.aliases().into_iter().filter(new).collect();
        let new = |assertion: &Assertion| !assertions.contains(assertion);
        let asserted: Vec<Assertion> = other.assertions().into_iter().filter(new).collect();
        aliases.extend(more);
        assertions.extend(asserted);
    }
    let mut piece = |name: &str, of: &Tiling, does: &str| {
        let [rows, columns, _] = of.tile;
        let comment = format!("(ROWS,COLUMNS) that a CTA {does}");
        aliases.push(Alias { name: name.to_owned(), ty: emit::shape_type([rows, columns]), comment });
    };
    piece("TilePack", &part.pack, "packs");
    if let Some([_, add_up]) = &part.stream_k {
        piece("TilePiece", add_up, "adds up");
    }
    let mut operands = part.recipe.tensors(&part.product);
    let scales: Vec<ScalesText> = scales(part, &operands);
    let view = |scales: &ScalesText| Alias {
        name: format!("View{}", scales.name),
        ty: scales.view.clone(),
        comment: "(BM,BN,STAGES)".to_owned(),
    };
    aliases.extend(scales.iter().map(view));
    for (factor, turns) in operands.iter_mut().zip(part.recipe.turns()) {
        // It is read from the workspace, where it lies the other way.
        if turns {
            factor.strides.swap(0, 1);
        }
    }
    Common {
        banner: emit::banner(plan, template),
        part,
        plan,
        op: EpilogueText::new(&part.product, &operands),
        operands: operands.into_iter().map(|operand| Tensor::new(&part.product, operand, 1)).collect(),
        threads: tiling.threads(),
        smem_bytes: part.smem.0,
        element: element(part),
        of_element: match part.recipe.factors() {
            [a, b] if a == b => "A and B",
            _ => "A; B is packed as its bits",
        },
        aliases,
        assertions,
        tensors: tiling.smem.iter().map(|tensor| shared(part, tensor)).collect(),
        align: tiling.smem.iter().map(|tensor| tensor.align.0).max().unwrap_or(16),
        scales,
    }
}

/// The scales of blocks: where they lie, and which one an element of D is multiplied by.
fn scales(part: &Part, operands: &[Operand]) -> Vec<ScalesText> {
    let [bm, bn, _] = part.tiling.tile;
    let text = |scales: Scales| {
        let (Scales { mode, rows, granule, count }, apart_stages) = (scales, scales.apart());
        let operand = operands.iter().find(|operand| operand.name == SCALES[mode])?;
        let params = stride_params(operand);
        let param = |mode: usize| params.get(mode)?.as_ref().map(|name| format!("params.{name}"));
        // ScaleB is (K/128,N).
        let (row, k) = (param(mode)?, param(1 - mode)?);
        let apart = param(2).map(|apart| format!(", {apart}"));
        let (l, modes_l) = if apart.is_some() { (", params.l", ",l") } else { ("", "") };
        let extent = ["m", "n"][mode];
        let stages = part.own.stages;
        let along = [format!("Shape<Int<{granule}>,Int<{count}>>"), "Stride<_0,_1>".to_owned()];
        let other = [emit::int([bn, bm][mode]), "_0".to_owned()];
        let of = |which: usize| {
            let [first, second] = if mode == 0 { [&along, &other] } else { [&other, &along] };
            format!("{},{}", first[which], second[which])
        };
        Some(ScalesText {
            factor: ["A", "B"][mode],
            name: SCALES[mode],
            param: operand.param.clone(),
            mode,
            granule,
            modes_l,
            shape: format!(
                "make_shape(make_shape(Int<{rows}>{{}}, ceil_div(params.{extent}, {rows})), ceil_div(params.k, {SCALED_K}){l})"
            ),
            strides: format!("make_stride(make_stride(_0{{}}, {row}), {k}{})", apart.unwrap_or_default()),
            view: format!("Layout<Shape<{},Int<{stages}>>, Stride<{},Int<{apart_stages}>>>", of(0), of(1)),
        })
    };
    part.recipe.scales(&part.own).filter_map(text).collect()
}

/// The type of A and B: of tf32 the one that TMA made of f32, or f32 until it is rounded in registers.
fn element(part: &Part) -> &'static str {
    match (part.recipe.dtype, part.isa) {
        (Factors::Tf32, Isa::Sm90a) => "tfloat32_t",
        _ => emit::element(part.recipe.factors()[0].dtype()),
    }
}

fn shared(part: &Part, tensor: &SmemTensor) -> Shared {
    let is_factor = part.tiling.operands().any(|operand| operand.name == tensor.name);
    let ty = if is_factor && part.recipe.dtype == Factors::Tf32 { element(part) } else { emit::element(tensor.dtype) };
    Shared {
        name: tensor.name,
        param: tensor.name.to_lowercase(),
        align: tensor.align,
        ty,
        lent: tensor.lives == Lives::Epilogue,
    }
}

pub(super) fn header(part: &Part, plan: &Plan) -> String {
    match &part.budget {
        Budget::Sm80(r) => emit::text(&Sm80 { c: common(part, plan, "gemm/sm80.cuh"), r }),
        Budget::Sm90a(r) => {
            let mut c = common(part, plan, "gemm/sm90a.cuh");
            c.aliases.extend(r.kept.as_ref().map(|lent| Alias {
                name: "SmemDA".to_owned(),
                ty: lent.ty(),
                comment: "(PART_M,PART_N,BUFFERS+LENT), lent by A".to_owned(),
            }));
            emit::text(&Sm90a {
                c,
                r,
                cluster: part.tiling.cluster,
                teams: part.tiling.teams(),
                sharing: match (part.tiling.teams(), part.tiling.splits()) {
                    (2.., _) => Sharing::PingPong,
                    (_, 2..) => Sharing::SplitK,
                    _ => Sharing::Cooperative,
                },
                headers: part.tiling.headers(),
                arrivals: part.arrivals(),
            })
        }
    }
}
