//! The text of a part: its joining template with the values of its tilings.

use askama::Template;

use super::Factors;
use super::ahead;
use super::decide::{Isa, Part};
use super::keep;
use super::tilings::parts_of_tile;
use crate::emit;
use crate::emit::{Alias, Assertion};
use crate::expr::{Compute, Helpers};
use crate::plan::Plan;
use crate::recipe::product::{EpilogueText, Tensor, stride_params};
use crate::tiling::{Arrivals, Lives, SmemTensor, Task, Tiling};
use crate::units::Bytes;

/// Operations of an epilogue that computes in few registers, at most.
const SHORT: usize = 10;

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
    aliases: Vec<Alias>,
    assertions: Vec<Assertion>,
    tensors: Vec<Shared>,
    /// The alignment of shared memory.
    align: u64,
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
}

#[derive(Template)]
#[template(path = "gemm/sm90a.cuh")]
struct Sm90a<'a> {
    c: Common<'a>,
    cluster: [u32; 3],
    teams: u32,
    /// The macro that CuTe needs before its headers.
    wants: Option<&'static str>,
    /// What barriers wait for.
    arrivals: Arrivals,
    /// The most accumulators of a thread that leave registers for prefetched inputs.
    roomy: u64,
    /// Elements that are computed at a time beside more accumulators.
    few: u32,
    /// Whether a tile of D stays in registers until the next tile is computed on.
    keeps: bool,
    /// Registers per thread for one slice of prefetched epilogue inputs; 0 without prefetch.
    ahead: u64,
    produce_registers: Option<u32>,
    consume_registers: Option<u32>,
}

impl Sm90a<'_> {
    /// Whether the mainloop overlaps with stores or prefetch.
    fn has_meanwhile(&self) -> bool {
        self.keeps || self.ahead > 0
    }
}

impl Common<'_> {
    fn batched(&self) -> bool {
        self.part.recipe.batched
    }

    /// CTAs of a cluster along (M,N).
    fn cluster_type(&self) -> String {
        let [along_m, along_n, _] = self.part.tiling.cluster;
        emit::shape_type([along_m.into(), along_n.into()])
    }

    /// The mode that tiles of a group lie along, and the other.
    fn raster(&self) -> [&'static str; 2] {
        self.part.recipe.along().modes()
    }

    /// CTAs of a tile, along K.
    fn splits(&self) -> u32 {
        self.part.tiling.splits()
    }

    /// Whether clusters share tiles along K.
    fn streams_k(&self) -> bool {
        self.part.tiling.streams_k()
    }

    /// Whether a CTA computes its tile from the turn's number, instead of advancing from the tile before.
    fn finds_anew(&self) -> bool {
        self.part.isa == Isa::Sm80
    }

    /// The last mode in the shape of a tensor of all tiles.
    fn modes_l(&self) -> &'static str {
        if self.batched() { ",l" } else { "" }
    }

    /// The thread whose slice is read. Its addresses are recomputed for each slice beside a D of any alignment, and in
    /// clusters that share both operands. Otherwise nvcc 13.0 computes all of them before the mainloop, and spills 120
    /// to 380 bytes. Elsewhere they are not recomputed, and C takes 1 to 5 % less time.
    fn reading_thread(&self) -> &'static str {
        let [along_m, along_n, _] = self.part.tiling.cluster;
        if along_m > 1 && along_n > 1 { "anew(thread)" } else { "TmaStore ? thread : anew(thread)" }
    }

    /// Whether a box of some factor may have fewer rows than its part of a tile.
    fn cuts(&self) -> bool {
        ["A", "B"].iter().any(|factor| self.part.cuts(factor))
    }

    /// Bytes of a k-tile of a factor that are copied.
    fn bytes(&self, factor: &str) -> String {
        let bytes = format!("bytes_{}", factor.to_lowercase());
        if self.part.cuts(factor) { format!("params.{bytes}") } else { bytes }
    }

    fn factors(&self) -> &[Tensor] {
        &self.operands[..2]
    }

    /// The epilogue inputs, and D.
    fn epilogue(&self) -> &[Tensor] {
        &self.operands[2..]
    }

    fn reads(&self) -> &[Tensor] {
        &self.operands[2..self.operands.len() - self.written().len()]
    }

    /// Whether any of that has an end along M or N.
    fn reads_have_ends(&self) -> bool {
        self.reads().iter().any(|tensor| tensor.inside("") != "true")
    }

    /// Atoms of an MMA along N whose epilogue inputs the text for sm_80 reads at once: 32 registers of inputs and
    /// addresses. One atom with tf32, a long epilogue and accumulators in half of a thread's registers: nvcc 13.0
    /// spilled with gelu of C and an auxiliary.
    fn at_once(&self) -> u64 {
        if self.rounds() && keep::accumulators(self.part) >= 128 && !self.part.recipe.epilogue.is_short(SHORT) {
            return 1;
        }
        let address = |tensor| if ahead::is_strided(tensor) { 2 } else { 0 };
        let words: u64 =
            self.reads().iter().map(|tensor| tensor.is.dtype.bytes().0.div_ceil(4) + address(tensor)).sum();
        (8 / words.max(1)).max(1)
    }

    /// The inputs that are read before a tensor.
    fn reads_before(&self, tensor: &Tensor) -> impl Iterator<Item = &Tensor> {
        self.reads().iter().take_while(|before| before.is.name != tensor.is.name)
    }

    /// Whether there is E.
    fn has_e(&self) -> bool {
        self.part.recipe.epilogue.outputs() > 1
    }

    /// D, and E ahead of it.
    fn written(&self) -> &[Tensor] {
        &self.operands[self.operands.len() - self.part.recipe.epilogue.outputs()..]
    }

    /// The buffer of the slice that is stored: E's follows D's.
    fn buffer_of(&self, tensor: &Tensor) -> &'static str {
        match (self.has_e(), tensor.is.name) {
            (false, _) => "buffer",
            (true, "D") => "outputs * buffer",
            (true, _) => "outputs * buffer + 1",
        }
    }

    /// Its number among the outputs.
    fn output_of(&self, tensor: &Tensor) -> &'static str {
        if tensor.is.name == "D" { "0" } else { "1" }
    }

    /// Whether fragments are fetched one k-block ahead: if a k-tile has several, and a thread has registers for two.
    /// With more registers than these nvcc 13.0 spills with tf32 and E; with as many, it spills with three epilogue
    /// inputs.
    fn fetches_ahead(&self) -> bool {
        let (tiling, accumulators) = (&self.part.tiling, keep::accumulators(self.part));
        let operands = tiling.registers().map_or(u64::MAX, |all| all.saturating_sub(accumulators));
        let of_k = tiling.mmas.iter().find_map(|mma| Some(mma.tiled().ok()?.tile_mnk().ok()?[2]));
        let most = if self.part.tensors() > 2 { 176 } else { 192 };
        of_k.is_some_and(|k| k < tiling.tile[2]) && accumulators.saturating_add(operands.saturating_mul(2)) <= most
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

    /// Whether any is.
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
        let ([a, b], l) = (self.part.recipe.k_major(), if self.batched() { ",L" } else { "" });
        let major = |k_major: bool, other| if k_major { "K" } else { other };
        let (a, b) = (major(a, "M"), major(b, "N"));
        let text = format!("A is (M,K{l}), {a}-major, B is (N,K{l}), {b}-major, D is (M,N{l}), N-major");
        let [turns_a, turns_b] = self.part.recipe.turns();
        let turned = [(turns_a, ", A turned from M-major"), (turns_b, ", B turned from N-major")];
        let text = turned.into_iter().filter(|(turns, _)| *turns).fold(text, |text, (_, also)| text + also);
        match self.part.recipe.is_turned() {
            true => text + ", where A and B are the launch's B and A, and D is its transposed D",
            false => text,
        }
    }

    /// The epilogue's result, from the accumulator `a` and the inputs in registers.
    fn computed(&self, prefix: &str, index: &str) -> String {
        format!("op(a{})", self.op.converted(&self.operands, prefix, index))
    }

    /// An element of D, or of E with two outputs, from that result.
    fn rounded(&self, value: &str) -> String {
        Helpers::new(Compute::F32).store(self.part.recipe.out, value)
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
    let mut operands = part.operands();
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
        aliases,
        assertions,
        tensors: tiling.smem.iter().map(|tensor| shared(part, tensor)).collect(),
        align: tiling.smem.iter().map(|tensor| tensor.align.0).max().unwrap_or(16),
    }
}

/// The type of A and B: of tf32 the one that TMA made of f32, or f32 until it is rounded in registers.
fn element(part: &Part) -> &'static str {
    match (part.recipe.dtype, part.isa) {
        (Factors::Tf32, Isa::Sm90a) => "tfloat32_t",
        (factors, _) => emit::element(factors.dtype()),
    }
}

fn shared(part: &Part, tensor: &SmemTensor) -> Shared {
    let is_factor = part.tiling.operands().any(|operand| operand.name == tensor.name);
    let ty = if is_factor { element(part) } else { emit::element(tensor.dtype) };
    Shared {
        name: tensor.name,
        param: tensor.name.to_lowercase(),
        align: tensor.align,
        ty,
        lent: tensor.lives == Lives::Epilogue,
    }
}

/// The most accumulators of a thread that leave enough registers for a slice of D and prefetched inputs. Also for 32
/// elements of each tensor that is read meanwhile, and for the addresses of many tensors, or of the elements of one
/// along a stride. The prefetched inputs of a kept tile are taken back one copy at a time.
fn roomy(part: &Part, reads: &[Tensor], given: Option<u32>, ahead: u64, keeps: bool) -> u64 {
    if keeps && ahead > 0 {
        return 0;
    }
    // E is none that is read.
    let others = if ahead > 0 { part.recipe.epilogue.outputs() as u64 - 1 } else { part.tensors() };
    let parts = part.tiling.smem("D").map_or(1, |staged| parts_of_tile(&part.tiling, staged));
    let addresses = match reads.iter().any(ahead::is_strided) {
        true => 2 * 32,
        false if others > 2 => 16,
        false => 0,
    };
    let waiting = if keeps { keep::registers(part) } else { u64::from(parts) * ahead };
    keep::most(given).saturating_sub(32 * (1 + others) + addresses + waiting)
}

pub(super) fn header(part: &Part, plan: &Plan) -> String {
    match part.isa {
        Isa::Sm80 => emit::text(&Sm80 { c: common(part, plan, "gemm/sm80.cuh") }),
        Isa::Sm90a => {
            let registers = |task| part.tiling.roles.iter().find(|role| role.task == task)?.registers;
            let mut c = common(part, plan, "gemm/sm90a.cuh");
            let lent = keep::lent(part, registers(Task::Consume));
            let keeps = lent.is_some();
            let ahead = ahead::registers(part, c.reads(), registers(Task::Consume), keeps);
            let roomy = roomy(part, c.reads(), registers(Task::Consume), ahead, keeps);
            c.aliases.extend(lent.map(|lent| Alias {
                name: "SmemDA".to_owned(),
                ty: lent.ty(),
                comment: "(PART_M,PART_N,BUFFERS+LENT), lent by A".to_owned(),
            }));
            emit::text(&Sm90a {
                c,
                cluster: part.tiling.cluster,
                teams: part.tiling.teams(),
                wants: part.tiling.mmas.iter().find_map(|mma| mma.tiled().ok()?.atom().wants_macro()),
                arrivals: part.arrivals(),
                roomy,
                // One copy's elements of the kept tile.
                few: if keeps { 8 } else { 2 },
                keeps,
                ahead,
                produce_registers: registers(Task::Produce),
                consume_registers: registers(Task::Consume),
            })
        }
    }
}
