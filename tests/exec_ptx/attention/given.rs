//! The kernels of these tests, and what they are given.

use std::sync::{LazyLock, OnceLock};

use cutemplate::arch::{Arch, Targets};
use cutemplate::diagnostic::Code;
use cutemplate::exec::Program;
use cutemplate::plan::Operand;
use cutemplate::recipe::{Attention, Recipe, family};
use cutemplate::settings::Settings;
use cutemplate::units::Elements;
use cutemplate::verify::Fill;
use cutemplate::view::ViewRef;

use crate::catalogue::for_arch;
use crate::kernels::attention::{packed, paged, sized};
use crate::kernels::{Kernel, Problem, Tensors};
use crate::own::{built, is_right, program, run, targets};

/// Parts of the names of the catalogue's kernels.
pub(super) const FULL: &str = "f16_128";
pub(super) const CAUSAL: &str = "causal_lse";
pub(super) const WINDOW: &str = "72x40_window";
pub(super) const VARLEN: &str = "causal_varlen";
pub(super) const SINKS: &str = "sinks";
/// Keys up to a query's own, but so many, and a prefix; queries ahead of a first one see none.
pub(super) const EMPTIED: &str = "lse_scored";
pub(super) const PAGED: &str = "causal_paged";
pub(super) const NARROW: &str = "e4m3";
/// Pages of 64 keys, which TMA copies: two to a step. And those of 256 for sequences one after the other, of two steps each.
pub(super) const PAGES: &str = "ptx_pages64";
pub(super) const PAGES_VARLEN: &str = "ptx_pages256";
/// Which are in no catalogue.
const BY_PAGES: [(&str, &str); 2] = [
    (PAGES, "dtype=bf16\nhead=64\nmask=causal\npaged=true\npage=64\nlse=true"),
    (PAGES_VARLEN, "head=128\nvalue=72\nmask=window\nvarlen=true\npaged=true\npage=256\nlse=true\nsinks=true"),
];

/// The catalogue's, each for sm_80 and for sm_90a; pages have one text. nvcc makes those that a test asks for.
static KERNELS: LazyLock<Vec<(Kernel, OnceLock<String>)>> = LazyLock::new(|| {
    let of = |arch| for_arch(arch).into_iter().filter(|kernel| kernel.plan.family() == Attention::FAMILY);
    let of_sm90a = of(Arch::Sm90a).filter(|kernel| !kernel.plan.name().contains("paged"));
    let by_pages = BY_PAGES.iter().map(|(stem, settings)| {
        let recipe = Attention::from_settings(&Settings::parse_lines(settings)).expect("settings");
        Kernel::new(stem, 0, &recipe, &targets()).expect("a right recipe")
    });
    of(Arch::Sm80).chain(of_sm90a).chain(by_pages).map(|kernel| (kernel, OnceLock::new())).collect()
});

/// The texts of a kernel.
pub(super) fn named(part: &str) -> Vec<(&'static Kernel, &'static str)> {
    let named = KERNELS.iter().filter(|(kernel, _)| kernel.plan.name().contains(part));
    let all: Vec<_> = named.map(|(kernel, text)| (kernel, text.get_or_init(|| built(kernel)).as_str())).collect();
    assert_eq!(all.len(), if matches!(part, PAGED | NARROW | PAGES | PAGES_VARLEN) { 1 } else { 2 }, "texts of {part}");
    all
}

/// What a kernel of the catalogue is given: its inputs are filled with normal numbers, or as its row says.
#[derive(Clone, Copy)]
pub(super) enum Of<'a> {
    /// Extents B, SQ, SK, HQ, HK.
    Dense([i64; 5]),
    /// Lengths of queries and keys, HQ and HK.
    Packed([&'a [i64]; 2], [i64; 2]),
    /// Queries and keys of a page, lengths, HQ and HK.
    Paged([i64; 2], &'a [i64], [i64; 2]),
}

pub(super) use Of::{Dense, Packed, Paged};

impl Of<'_> {
    pub(super) fn problem(&self, kernel: &Kernel, scalars: &[f64], fill: Fill, seed: u64) -> Problem {
        let plan = &kernel.plan;
        match self {
            Dense(extents) => sized(plan, extents, scalars, fill, seed),
            Packed(lengths, heads) => packed(plan, *lengths, *heads, scalars, fill, seed),
            Paged(sizes, lengths, heads) => paged(plan, *sizes, lengths, *heads, scalars, fill, seed),
        }
    }
}

/// A row of the table: a kernel, and problems with scalars.
pub(super) type Row<'a> = (&'a str, Fill, &'a [(Of<'a>, &'a [f64])]);

pub(super) fn are_right(rows: &[Row<'_>]) {
    for (part, fill, problems) in rows {
        for (kernel, text) in named(part) {
            let problem = |((of, scalars), seed): (&(Of<'_>, &[f64]), u64)| of.problem(kernel, scalars, *fill, seed);
            is_right(kernel, program(kernel, text), problems.iter().zip(1..).map(problem));
        }
    }
}

/// The tensors of a launch, with outputs as the kernel leaves them.
pub(super) fn launched(kernel: &Kernel, program: &Program, problem: &Problem) -> Tensors {
    let mut tensors = Tensors::new(&kernel.plan, problem);
    let report = run(kernel, program, problem, &mut tensors);
    assert!(report.is_clean(), "{kernel}\n{problem}\n{report}");
    assert_eq!(tensors.wrong(&kernel.plan, problem), None, "{kernel}\n{problem}");
    tensors
}

pub(super) fn bits(tensors: &Tensors) -> Vec<Vec<u8>> {
    tensors.outputs.iter().map(|output| output.storage().to_vec()).collect()
}

/// The first code of a refusal.
pub(super) fn refused(settings: &str) -> Code {
    let targets = Targets::new([Arch::Sm80, Arch::Sm90a]).expect("not empty");
    let family = family(Attention::FAMILY).expect("registered");
    let refused = family.plan(&Settings::parse_lines(settings), Some("k"), &targets).expect_err("refused");
    refused.diagnostics()[0].code
}

/// Views of a kernel's operands in memory that is not there.
pub(super) fn views(kernel: &Kernel, extents: &[i64]) -> Vec<ViewRef> {
    let view = |((operand, shape), place): ((&Operand, Vec<i64>), u64)| {
        let layout = operand.layout(&shape, None).expect("few elements");
        let available = Elements(1 << 42);
        ViewRef { dtype: operand.dtype, ptr: place << 45, available, layout, access: operand.access }
    };
    let shapes = kernel.plan.shapes(extents).expect("extents of attention");
    kernel.plan.operands().iter().zip(shapes).zip(1..).map(view).collect()
}
