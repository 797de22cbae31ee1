//! PTX of the kernels that tests look at line by line, or change. Most of the time to compile one goes into CuTe's headers and its
//! functions, so nvcc runs once for those of an architecture that declare shared memory alike, and each gets its entries of what it made.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use cutemplate::arch::Arch;

use crate::kernels::Kernel;
use crate::needed::{CLUSTERS, PART, TEAMS};
use crate::own::{CORES, NAIVE, SPLIT, STAGED, TILED, WARPGROUPS, apply, gemm, sgemm};
use crate::profile::kernels::counted;
use crate::ptx_batch::{apart, text};

fn all() -> Vec<Kernel> {
    let rungs = [NAIVE, TILED, STAGED, SPLIT].map(sgemm);
    let products = [WARPGROUPS, TEAMS, CLUSTERS, PART].map(|settings| gemm(settings, Arch::Sm90a));
    let others = [apply(), gemm(CORES, Arch::Sm80)];
    rungs.into_iter().chain(products).chain(others).chain(counted()).collect()
}

static TEXTS: LazyLock<BTreeMap<String, String>> = LazyLock::new(|| {
    let (of_sm80, of_sm90a): (Vec<Kernel>, Vec<Kernel>) =
        all().into_iter().partition(|kernel| kernel.plan.targets().archs() == [Arch::Sm80]);
    let groups: Vec<Vec<&Kernel>> = [&of_sm80, &of_sm90a]
        .into_iter()
        .flat_map(|kernels| {
            let groups = apart(kernels.iter().map(|kernel| kernel.unit.files()));
            groups.into_iter().map(|group| group.into_iter().map(|number| &kernels[number]).collect())
        })
        .collect();
    let made = |group: &[&Kernel]| {
        let sources: Vec<_> = group.iter().map(|kernel| (&kernel.plan, kernel.unit.files())).collect();
        let whole = text(&sources).unwrap_or_else(|e| panic!("{e}"));
        let own = |kernel: &&Kernel| (kernel.plan.name().to_owned(), of_entries(&whole, kernel));
        group.iter().map(own).collect::<Vec<_>>()
    };
    let texts = std::thread::scope(|scope| {
        let made = &made;
        let running: Vec<_> = groups.iter().map(|group| scope.spawn(move || made(group))).collect();
        running.into_iter().flat_map(|thread| thread.join().expect("nvcc's texts")).collect::<Vec<_>>()
    });
    let count = texts.len();
    let texts: BTreeMap<String, String> = texts.into_iter().collect();
    assert_eq!(texts.len(), count, "two kernels have one name");
    texts
});

/// The text of one of them.
pub(crate) fn ptx(kernel: &Kernel) -> &'static str {
    TEXTS.get(kernel.plan.name()).unwrap_or_else(|| panic!("{kernel} is not among those that are compiled together"))
}

/// What is not an entry of another kernel.
fn of_entries(whole: &str, kernel: &Kernel) -> String {
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
