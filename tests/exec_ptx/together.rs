//! PTX of the kernels that tests look at line by line, change, or run in every mode. Most of the time to compile one goes into CuTe's
//! headers and its functions, so nvcc takes many at a time, and each gets its entries of what it made.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use cutemplate::arch::Arch;
use cutemplate::recipe::{Gemm, Recipe};

use crate::kernels::Kernel;
use crate::needed::{CLUSTERS, KEPT, PART, TEAMS};
use crate::own::{
    CORES, NAIVE, SPLIT, STAGED, TILED, WARPGROUPS, apply, gemm, of_tensor_cores, of_warpgroups, sgemm, sums,
};
use crate::profile::kernels::counted;
use crate::ptx_batch::{apart, by_all_processors, parts, text};
use crate::staying;

/// Products on tensor cores in one text: nvcc takes 4.5 GB for four, and as many texts at a time as there are processors.
const MOST: usize = 5;

/// Kernels of one tile lie side by side: beside another of its tile nvcc takes 6 s for a kernel, beside others 11, alone 26.
fn all() -> Vec<Kernel> {
    let of = |settings: &str| gemm(settings, Arch::Sm90a);
    let products = [WARPGROUPS, CLUSTERS, TEAMS, PART].map(of).into_iter().chain(of_warpgroups());
    let products = products.chain([KEPT, staying::TURNS].map(of));
    let products = products.chain([gemm(CORES, Arch::Sm80)]).chain(of_tensor_cores());
    let rungs = [STAGED, SPLIT, TILED, NAIVE].map(sgemm);
    products.chain(rungs).chain([apply()]).chain(sums()).chain(counted()).collect()
}

/// Of one architecture, that declare shared memory alike. Those that nvcc takes longest for come first.
fn groups(kernels: &[Kernel]) -> Vec<Vec<&Kernel>> {
    let of_sm80 = |kernel: &&Kernel| kernel.plan.targets().archs() == [Arch::Sm80];
    let (of_sm80, of_sm90a): (Vec<&Kernel>, Vec<&Kernel>) = kernels.iter().partition(of_sm80);
    let mut groups = Vec::new();
    for kernels in [of_sm90a, of_sm80] {
        for alike in apart(kernels.iter().map(|kernel| kernel.unit.files())) {
            let of = |numbers: &[usize]| -> Vec<&Kernel> { numbers.iter().map(|number| kernels[*number]).collect() };
            groups.extend(parts(&alike, products(&of(&alike)).div_ceil(MOST)).map(of));
        }
    }
    groups.sort_by_key(|group| Reverse(products(group)));
    groups
}

/// How many of them run on tensor cores.
fn products(kernels: &[&Kernel]) -> usize {
    kernels.iter().filter(|kernel| kernel.plan.family() == Gemm::FAMILY).count()
}

static TEXTS: LazyLock<BTreeMap<String, String>> = LazyLock::new(|| {
    let kernels = all();
    let groups = groups(&kernels);
    let made = by_all_processors(&groups, |group| {
        let sources: Vec<_> = group.iter().map(|kernel| (&kernel.plan, kernel.unit.files())).collect();
        let whole = text(&sources).unwrap_or_else(|e| panic!("{e}"));
        group.iter().map(|kernel| (kernel.unit.name().to_owned(), of_entries(&whole, kernel))).collect::<Vec<_>>()
    });
    let texts: BTreeMap<String, String> = made.into_iter().flatten().collect();
    assert_eq!(texts.len(), kernels.len(), "two kernels have one name");
    texts
});

/// The text of one of them.
pub(crate) fn ptx(kernel: &Kernel) -> &'static str {
    TEXTS.get(kernel.unit.name()).unwrap_or_else(|| panic!("{kernel} is not among those that are compiled together"))
}

/// What is not an entry of another kernel.
pub(crate) fn of_entries(whole: &str, kernel: &Kernel) -> String {
    let own: Vec<String> =
        kernel.plan.entries().iter().map(|entry| format!(".visible .entry {}(", entry.name)).collect();
    let (mut text, mut depth, mut found, mut another) = (String::new(), 0, 0, false);
    for line in whole.lines() {
        if line.starts_with(".visible .entry ") {
            another = !own.iter().any(|head| head == line);
            found += usize::from(!another);
        }
        if !another {
            text.push_str(line);
            text.push('\n');
        }
        let count = |brace: char| line.matches(brace).count();
        let before = depth;
        depth += count('{');
        depth -= count('}');
        another &= before == 0 || depth > 0;
    }
    assert_eq!(found, own.len(), "{kernel}");
    text
}
