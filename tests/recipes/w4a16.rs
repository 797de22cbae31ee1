//! Contract: products of 4-bit weights are right as PTX, for every group, type, tile and split of K; nothing else is written.

use crate::judge::{self, Defect};
use crate::kernels::w4a16::drawn;
use crate::kernels::{Kernel, Tally};
use crate::ptx_set::{PtxSet, Source, as_it_is};
use crate::whole;
use cutemplate::arch::{Arch, Targets};
use cutemplate::recipe::{Recipe, W4a16};
use cutemplate::settings::Settings;

fn recipe(settings: &str) -> W4a16 {
    W4a16::from_settings(&Settings::parse_lines(settings)).expect("settings")
}

/// Every group with and without zero points, in both types.
fn listed() -> impl Iterator<Item = W4a16> {
    let tiles = ["tile=16x128x64", "tile=64x64x128\nslices=2\nstages=2", "tile=32x256x32\nslices=1\nstages=3"];
    [32, 64, 128].into_iter().zip(tiles).flat_map(|(group, tile)| {
        let of = move |zeros, dtype| recipe(&format!("{tile}\ngroup={group}\nzeros={zeros}\ndtype={dtype}\nctas=3"));
        [of(false, "f16"), of(true, "f16"), of(false, "bf16"), of(true, "bf16")]
    })
}

fn targets(arch: Arch) -> Targets {
    Targets::new([arch]).expect("an architecture")
}

/// The listed recipes, and random ones: a few, or with `CUTEMPLATE_WHOLE=1` more. The text for sm_90a differs by what it waits for.
fn kernels(arch: Arch) -> (Tally, Vec<Kernel>) {
    let (mut tally, targets) = (Tally::default(), targets(arch));
    let (listed_count, count) = if arch == Arch::Sm90a { (2, whole::or(20, 1)) } else { (12, whole::or(60, 6)) };
    let mut kernels = tally.plan(&format!("w4a16_listed_{arch}"), (0..).zip(listed()).take(listed_count), &targets);
    assert_eq!(kernels.len(), listed_count, "{tally}");
    let random = (100..100 + count).map(|index| (index, drawn(index)));
    kernels.extend(tally.plan(&format!("w4a16_{arch}"), random, &targets));
    (tally, kernels)
}

/// By themselves: they share little with kernels of other families.
static KERNELS: PtxSet = PtxSet::new(|| of_nvcc(Arch::Sm80, judge::planted_for(&targets(Arch::Sm80), DEFECTS, recipe)));

static WAITING: PtxSet = PtxSet::new(|| of_nvcc(Arch::Sm90a, Vec::new()));

/// What the tests of this module run as PTX.
fn of_nvcc(arch: Arch, planted: Vec<Source>) -> Vec<Source> {
    kernels(arch).1.into_iter().map(as_it_is).chain(planted).collect()
}

#[test]
fn recipes_are_refused_or_right() {
    for (arch, set) in [(Arch::Sm80, &KERNELS), (Arch::Sm90a, &WAITING)] {
        let (mut tally, kernels) = kernels(arch);
        judge::run(&mut tally, set, &kernels, |kernel| kernel.problems(12, 20_000).collect());
        tally.finish("w4a16");
    }
}

#[test]
fn every_refusal_has_a_reason() {
    let mut tally = Tally::default();
    let kernels = tally.plan("refused", (0..300).map(|index| (index, drawn(index))), &Targets::default());
    assert!(tally.failures.is_empty() && kernels.len() > 200 && kernels.len() < 300, "{tally}");
}

/// Several groups of a k-tile, several warps of a slice, tiles that CTAs share.
const SMALL: &str = "dtype=f16\ngroup=32\nzeros=true\ntile=16x128x64\nslices=2\nstages=2\nctas=3";

const DEFECTS: &[Defect] = &[
    Defect { what: "a nibble too far", settings: SMALL, from: ">> 8 * (j % 2)", to: ">> 8 * (j % 2) * (j < 7)" },
    Defect { what: "even columns in the place of odd ones", settings: SMALL, from: "thread / 4 % 2 != 0", to: "false" },
    Defect {
        what: "the scales of the first group for all",
        settings: SMALL,
        from: "int const row = k * 16 / group;",
        to: "int const row = 0;",
    },
    Defect { what: "zero points of eight bits", settings: SMALL, from: "bytes & 0x0f0f0f0f", to: "bytes" },
    Defect {
        what: "a stage is written while it is read",
        settings: SMALL,
        from: "    sync_slice(slice);  //",
        to: "    if (k_tile == first) sync_slice(slice);  //",
    },
    Defect {
        what: "a stage is read before it has arrived",
        settings: SMALL,
        from: "cp_async_wait<stages - 2>()",
        to: "cp_async_wait<stages - 1>()",
    },
    Defect { what: "a slice less", settings: SMALL, from: "other < slices", to: "other < slices - 1" },
    Defect { what: "a part less", settings: SMALL, from: "cta <= last", to: "cta < last" },
    Defect {
        what: "sums lie where stages still do",
        settings: SMALL,
        from: "    __syncthreads();  // all have read what lay there\n",
        to: "",
    },
    Defect {
        what: "stages lie where sums still do",
        settings: SMALL,
        from: "    __syncthreads();  // all have read the sums, which lie where stages do\n",
        to: "",
    },
    Defect { what: "rows past the last", settings: SMALL, from: "m < params.m && n < params.n", to: "n < params.n" },
];

#[test]
fn planted_defects_are_found() {
    let problems = |kernel: &Kernel| kernel.problems(24, 20_000).collect();
    judge::find_for(&targets(Arch::Sm80), DEFECTS, &KERNELS, recipe, problems);
}
