//! The text of a part: its joining template with the values of its tilings.

mod operands;
mod order;
mod scales;
mod sections;

use askama::Template;

use operands::Way;
use order::Counts;
use scales::{ScalesText, scales};
use sections::Section;

use super::budget::{Budget, Warpgroups, Warps};
use super::decide::Part;
use super::{Factors, ScaleType};
use crate::emit;
use crate::emit::{Alias, Assertion};
use crate::plan::{Groups, Plan};
use crate::recipe::Isa;
use crate::recipe::product::{EpilogueText, Tensor};
use crate::tiling::{Arrivals, Lives, SmemTensor, Tiling};
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
    /// The same, of groups along K.
    OfK,
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
    if part.recipe.pairs {
        let (name, ty) = ("TilePairs".to_owned(), emit::shape_type(tiling.tile_of_d()));
        aliases.push(Alias { name, ty, comment: "(BM,BN/2) of D".to_owned() });
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
                    _ if part.recipe.groups == Groups::K => Sharing::OfK,
                    _ => Sharing::Cooperative,
                },
                headers: part.tiling.headers(),
                arrivals: part.arrivals(),
            })
        }
    }
}
