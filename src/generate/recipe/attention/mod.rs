//! `attention`: O = softmax(scale * Q @ K^T) @ V for each head, without the matrix of scores in memory. Scores are f32 in registers;
//! a row keeps its maximum and its sum while keys pass (online softmax). Each group of architectures has a text of its own: `cp.async`,
//! `ldmatrix` and `mma.sync` from sm_80 on; TMA, WGMMA and persistent CTAs on sm_90a.

mod decide;
#[cfg(feature = "emit")]
mod emit;
mod launch;
mod score;
mod tilings;

use crate::arch::Targets;
use crate::diagnostic::PlanError;
use crate::dtype::DType;
use crate::expr::Function;
use crate::plan::Plan;
pub use crate::recipe::TensorArgs as AttentionArgs;
use crate::recipe::field::{as_displayed, recipe};
use crate::recipe::product::Extents;
use crate::recipe::{Isa, OfTensors, Recipe, TensorSpec};
use crate::settings::{Setting, named};

named! {
    /// The keys that a query sees. The last query is aligned with the last key.
    #[derive(Default)]
    Mask, "mask":
    /// All.
    #[default]
    Full = "full",
    /// Those up to its own.
    Causal = "causal",
    /// Those up to so many ahead of its own, and so many behind: the scalars `left` and `right`, -1 for all.
    Window = "window",
}

as_displayed!(Mask);

recipe! {
    /// `O(b,i,h) = sum over keys j of w(j) * V(b,j,g)`, where `w` is the softmax of `scale * sum over d of Q(b,i,h,d) * K(b,j,g,d)` over
    /// the keys that query `i` sees. Q is `(B,SQ,HQ,D)`, K `(B,SK,HK,D)`, V `(B,SK,HK,DV)`, O `(B,SQ,HQ,DV)`. Each row is contiguous;
    /// all other strides are given at launch, in multiples of 16 bytes. `g = h / (HQ / HK)`: HK divides HQ.
    ///
    /// With `varlen` sequences of any lengths lie one after the other, and the device reads where they begin. Starts that go back, or
    /// past the end, are taken for the furthest so far, and for the end. Queries ahead of the first start, and behind the last, see no
    /// key: what lies behind the sequences of a batch in a larger buffer becomes 0.
    ///
    /// A query without a key has `O = 0` and a logarithm of -inf. Scores, maxima and sums are f32. Weights are rounded to the type of V
    /// before they are multiplied with it.
    ///
    /// ```
    /// use cutemplate::arch::Targets;
    /// use cutemplate::recipe::{Attention, Recipe};
    ///
    /// let plan = Attention { lse: true, ..Attention::default() }.plan(&Targets::default())?;
    /// let names: Vec<&str> = plan.operands().iter().map(|operand| operand.name).collect();
    /// assert_eq!((names, plan.scalars().len()), (vec!["Q", "K", "V", "O", "Lse"], 1));
    /// # Ok::<(), cutemplate::diagnostic::PlanError>(())
    /// ```
    pub struct Attention |this| {
        /// type of Q, K, V and O: f16, bf16
        dtype: DType, "bf16";
        /// type of K and V; auto: that of Q; e4m3: with ScaleK and ScaleV, (HK) in f32, which K and V of a head are multiplied by
        dtype_kv: Option<DType>, "e4m3", if this.dtype_kv.is_some();
        /// elements of a row of Q and K: 8 to 256, a multiple of 8
        head: u32, "128";
        /// elements of a row of V and O, likewise; auto: as many as head
        value: Option<u32>, "64", if this.value.is_some();
        /// keys that a query sees: full, causal, window
        mask: Mask, "causal";
        /// whether sequences lie one after the other, Q (TQ,HQ,D), K (TK,HK,D), V (TK,HK,DV), O (TQ,HQ,DV), and StartsQ and StartsK,
        /// (STARTS) in i32, say where each begins, and where the last ends: true, false
        varlen: bool, "true", if this.varlen;
        /// whether K is (PAGES,PAGE,HK,D), V (PAGES,PAGE,HK,DV), and keys of a sequence lie in pages: Table, (B,ENTRIES) in i32, has the
        /// number of each page, and Lengths, (B) in i32, the keys of each sequence. With varlen, queries of the B sequences lie one after
        /// the other, and StartsQ has B + 1 starts: true, false
        paged: bool, "true", if this.paged;
        /// paged: the keys of a page. Without `split`, sm_90a then has the text in which TMA copies pages: one divides the keys of a step, or
        /// these divide it; auto: any, at launch, by the text of older architectures
        page: Option<u32>, "64", if this.page.is_some();
        /// paged: keys of a CTA, whose results a second kernel combines: a multiple of the keys of a step. With a number results do not
        /// depend on the batch; auto: as many as fill the chip
        split: Option<u32>, "1024", if this.split.is_some();
        /// whether Lse, (B,SQ,HQ), or (TQ,HQ), in f32, is an output: the logarithm of the sum of exponentials of a query's scores: true, false
        lse: bool, "true", if this.lse;
        /// the function of the scaled score s, of batch b, head h, query q and key k, and of auxiliary elements, in this order, that gives
        /// the score; q is the key that the query is aligned with
        score: Function, "|s; cap| cap * tanh(s * (1 / cap))", if !this.score.is_first_input();
        /// type and strides of each auxiliary tensor, (B,HQ,SQ,SK), or (HQ,TQ,TK), or (B,HQ,SQ,KEYS): stride 0 broadcasts along a mode
        aux: Vec<TensorSpec>, "f32:(0,1,0,0)", if !this.aux.is_empty();
        /// whether Sinks, (HQ), in f32, is an input: a score of each head that has a weight and no value: true, false
        sinks: bool, "true", if this.sinks;
        /// sm_90a: queries of a CTA, 64 for each warpgroup that multiplies, and keys of a step; auto: by head
        tile: Option<Extents<2>>, "192x128", if this.tile.is_some();
        /// sm_90a: stages of K, and of V: 1 to 8; auto: 2
        stages: Option<u32>, "3", if this.stages.is_some();
        /// sm_90a: whether warpgroups multiply in turn, one while another computes weights; auto: heads of up to 128: true, false
        pingpong: Option<bool>, "false", if this.pingpong.is_some();
        /// sm_90a: the most CTAs of a launch; each computes tiles until none is left. Paged: multiprocessors that splits fill
        ctas: u32, "114", if this.ctas != CTAS;
        /// older architectures: queries of a CTA and keys of a step; auto: by head. Paged: rows of a CTA, the queries of all heads that
        /// share a key head, on every architecture
        sm80_tile: Option<Extents<2>>, "128x64", if this.sm80_tile.is_some();
        /// older architectures: stages of K, and of V: 1 to 8; auto: by head
        sm80_stages: Option<u32>, "2", if this.sm80_stages.is_some();
        /// older architectures: warps of a CTA, which share its queries; auto: 4, paged: 1
        sm80_warps: Option<u32>, "4", if this.sm80_warps.is_some();
    }
}

/// The multiprocessors of an H100 and an H200.
const CTAS: u32 = 132;

impl Default for Attention {
    /// Heads of 128 f16.
    fn default() -> Self {
        Self {
            dtype: DType::F16,
            dtype_kv: None,
            head: 128,
            value: None,
            mask: Mask::Full,
            varlen: false,
            paged: false,
            page: None,
            split: None,
            lse: false,
            score: Function::unary(|score| score),
            aux: Vec::new(),
            sinks: false,
            tile: None,
            stages: None,
            pingpong: None,
            ctas: CTAS,
            sm80_tile: None,
            sm80_stages: None,
            sm80_warps: None,
        }
    }
}

/// What a text has of its own.
#[derive(Clone, Copy, Debug)]
struct Own {
    isa: Isa,
    /// Queries of a CTA and keys of a step.
    tile: [i64; 2],
    /// Stages of K, and of V.
    stages: i64,
    /// Warps that multiply.
    warps: i64,
    /// Whether warpgroups multiply in turn.
    pingpong: bool,
}

impl Attention {
    /// Elements of a row of V.
    fn value(&self) -> u32 {
        self.value.unwrap_or(self.head)
    }

    /// The type of K and V.
    fn dtype_kv(&self) -> DType {
        self.dtype_kv.unwrap_or(self.dtype)
    }

    /// Whether K and V have 8 bits, and scales.
    fn is_narrow(&self) -> bool {
        self.dtype_kv() == DType::E4m3
    }

    /// The operands with starts of sequences. Lengths say how many keys in pages there are.
    fn starts(&self) -> &'static [&'static str] {
        let count = if self.paged { 1 } else { 2 };
        &["StartsQ", "StartsK"][..if self.varlen { count } else { 0 }]
    }

    /// Texts and their architectures. Pages of any size, or with splits, and keys of 8 bits have one for all.
    fn texts(&self, targets: &Targets) -> Vec<(Isa, Targets)> {
        let by_tma = !self.paged || (self.page.is_some() && self.split.is_none());
        match !by_tma || self.is_narrow() {
            true => vec![(Isa::Sm80, targets.clone())],
            false => Isa::among(targets).collect(),
        }
    }

    /// The settings of a text.
    fn own(&self, isa: Isa) -> Own {
        let longest = self.head.max(self.value());
        // What else finds a step's keys and scores takes registers.
        let plain = !self.varlen && !self.paged && self.mask != Mask::Window && !self.is_scored();
        // A window with a function of scores spills with as many keys a step as other heads have.
        let crowded = self.mask == Mask::Window && self.is_scored();
        let chosen = |tile: Option<Extents<2>>, usual| tile.map_or(usual, |tile| tile.0.map(i64::from));
        // A step that no page fits has 64 keys.
        let fits = |[m, n]: [i64; 2]| if self.box_of(n).is_some() { [m, n] } else { [m, 64] };
        match isa {
            Isa::Sm80 => {
                let warps = self.sm80_warps.unwrap_or(if self.paged { 1 } else { 4 }).into();
                let usual = match longest {
                    _ if self.paged => [16, if self.is_narrow() { 32 } else { 16 }],
                    // Places of elements take the registers of other queries and keys.
                    ..=64 if self.strided_keys() == 0 => [32, 64],
                    // Fewer steps of keys, and K and V are read by half as many warps.
                    65..=128 if plain => [32, 32],
                    ..=128 => [16, 64],
                    _ => [16, if self.strided_keys() == 0 { 32 } else { 16 }],
                };
                // Queries of each warp, of four at most.
                let usual = [usual[0] * i64::min(warps, 4), usual[1]];
                let stages = self.sm80_stages.unwrap_or(if longest <= 64 || self.paged { 2 } else { 1 }).into();
                Own { isa, tile: chosen(self.sm80_tile, usual), stages, warps, pingpong: false }
            }
            Isa::Sm90a => {
                let tile = chosen(
                    self.tile,
                    fits(match longest {
                        ..=64 if plain => [192, 128],
                        ..=128 if crowded && self.reads_keys() => [128, 64],
                        ..=128 => [128, 128],
                        129..=192 if crowded => [128, 80],
                        129..=192 => [128, 96],
                        _ if crowded => [128, 48],
                        _ if self.is_scored() => [128, 64],
                        _ => [128, 80],
                    }),
                );
                let pingpong = self.pingpong.unwrap_or(longest <= 128) && tile[0] > 64;
                Own { isa, tile, stages: self.stages.unwrap_or(2).into(), warps: tile[0] / 16, pingpong }
            }
        }
    }

    /// Whether a text's CTAs have the keys of a split each, which a second kernel combines.
    fn splits(&self, isa: Isa) -> bool {
        self.paged && isa == Isa::Sm80
    }

    /// Keys that a box of a step has: all, or those of a page; none where pages and steps do not fit.
    fn box_of(&self, step: i64) -> Option<i64> {
        let page = self.page.filter(|_| self.paged).map_or(step, i64::from);
        let whole = page > 0 && page % 8 == 0 && step > 0 && (page % step == 0 || step % page == 0);
        whole.then_some(page.min(step))
    }

    /// The scalars of a launch.
    fn scalars(&self) -> Vec<String> {
        let all: &[&str] = if self.mask == Mask::Window { &["scale", "left", "right"] } else { &["scale"] };
        all.iter().map(|name| (*name).to_owned()).chain(self.names().scalars).collect()
    }
}

#[cfg(doctest)]
#[doc = include_str!("../../../../docs/attention.md")]
struct TheChapter;

impl OfTensors for Attention {}

impl Recipe for Attention {
    const FAMILY: &'static str = "attention";
    const RUST_TYPE: &'static str = "Attention";
    const SUMMARY: &'static str = "O = softmax(scale * Q @ K^T) @ V, heads of f16 or bf16, full, causal or in a window";
    const SETTINGS: &'static [Setting] = SETTINGS;
    /// Each type and mask, heads that fill their tiles and one that does not, one and two stages, functions of scores, of which one empties
    /// steps.
    const CATALOGUE: &'static [&'static str] = &[
        "",
        "dtype=bf16\nhead=64\nmask=causal\nlse=true",
        "head=72\nvalue=40\nmask=window\nlse=true\nsm80_tile=64x32",
        "dtype=bf16\nhead=32\nmask=causal\nvarlen=true\nlse=true\nsm80_tile=64x32",
        "head=64\nscore=|s, b, h, q, k, bias; cap| cap * tanh((s + bias) / cap)\naux=bf16:(0,?,?,1)\nsinks=true\nsm80_tile=64x32",
        "dtype=bf16\nhead=64\nscore=|s, b, h, q, k; reach, prefix, first| select((k <= q && q - k <= reach || k < prefix) && q >= first, s, -inf)\nlse=true\ntile=128x64\nsm80_tile=64x32",
        "dtype=bf16\nhead=64\nmask=causal\npaged=true\nsplit=64\nlse=true",
        "dtype=bf16\ndtype_kv=e4m3\nhead=64\nvalue=48\nmask=window\nvarlen=true\npaged=true\nsplit=64\nlse=true",
    ];
    const PROBLEM: &'static [i64] = &[4, 4096, 4096, 16, 16];
    const EXAMPLES: &'static [(&'static str, &'static str)] = &[("run", "--set mask=causal --problem 1x65x130x4x2")];

    fn plan_as(&self, name: &str, targets: &Targets) -> Result<Plan, PlanError> {
        decide::plan(self, name, targets)
    }

    fn default_name(&self) -> String {
        let mut name = format!("{}_{}_{}", Self::FAMILY, self.dtype, self.head);
        if let Some(value) = self.value.filter(|value| *value != self.head) {
            name += &format!("x{value}");
        }
        if self.mask != Mask::Full {
            name += &format!("_{}", self.mask);
        }
        for (is, suffix) in [
            (self.varlen, "_varlen"),
            (self.is_narrow(), "_e4m3"),
            (self.paged, "_paged"),
            (self.lse, "_lse"),
            (self.is_scored(), "_scored"),
            (self.sinks, "_sinks"),
        ] {
            name += if is { suffix } else { "" };
        }
        self.page.into_iter().for_each(|page| name += &format!("_page{page}"));
        name
    }
}
