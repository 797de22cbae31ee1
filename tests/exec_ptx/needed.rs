//! Each barrier, fence, wait and commit of this crate's kernels, taken out of their PTX in turn: it is missed, or another path orders
//! what it ordered, and the report prints that path.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use cutemplate::arch::Arch;
use cutemplate::exec::Options;
use cutemplate::exec::ptx::Modes;
use cutemplate::exec::{Path, Report};

use crate::catalogue::{catalogue, shipped};
use crate::kernels::{Kernel, Problem, Tensors};
use crate::own::{
    BOUNDED, CORES, NAIVE, RING, SPLIT, STAGED, STREAM, TILED, WARPGROUPS, apply, gemm, products, program, run, sgemm,
};
use crate::together::ptx;
use crate::whole;

const SYNCS: [&str; 17] = [
    "bar.sync",
    "bar.warp.sync",
    "barrier.sync",
    "barrier.cluster.",
    "membar",
    // Those of proxies and of initialised barriers among them.
    "fence",
    "cp.async.commit_group",
    "cp.async.wait_group",
    "cp.async.wait_all",
    "griddepcontrol.wait",
    "mbarrier.",
    "wgmma.fence",
    "wgmma.commit_group",
    "wgmma.wait_group",
    "cp.async.bulk.commit_group",
    "cp.async.bulk.wait_group",
    "setmaxnreg.",
];
const RACES: Modes = Modes { bounds: false, init: true, races: true };

/// A problem, and what the kernel as it is makes of it: the lines that are executed, and the tensors, which are right.
struct Case {
    problem: Problem,
    given: Tensors,
    whole: OnceCell<(BTreeSet<u32>, Tensors)>,
}

impl Case {
    fn all(kernel: &Kernel, problems: impl IntoIterator<Item = Problem>) -> Vec<Case> {
        let of = |problem| Case { given: Tensors::new(&kernel.plan, &problem), problem, whole: OnceCell::new() };
        problems.into_iter().map(of).collect()
    }
}

/// A kernel with one line of its PTX replaced.
struct Changed<'a> {
    kernel: &'a Kernel,
    lines: Vec<&'a str>,
}

impl Changed<'_> {
    fn whole<'a>(&self, of: &'a Case) -> &'a (BTreeSet<u32>, Tensors) {
        of.whole.get_or_init(|| {
            let options = Options { modes: Modes::PLAIN, profile: true, ..BOUNDED };
            let program = program(self.kernel, self.lines.join("\n")).with(options);
            let mut tensors = of.given.clone();
            // A launch without blocks has no profile.
            let profile = run(self.kernel, &program, &of.problem, &mut tensors).profile.unwrap_or_default();
            assert_eq!(tensors.wrong(&self.kernel.plan, &of.problem), None, "{}", self.kernel);
            (profile.instructions.iter().map(|instruction| instruction.site.ptx_line).collect(), tensors)
        })
    }

    fn run(&self, line: usize, instead: &str, of: &Case, paths: bool) -> (Report, Tensors) {
        let mut lines = self.lines.clone();
        lines[line] = instead;
        let program = program(self.kernel, lines.join("\n")).with(Options { modes: RACES, paths, ..BOUNDED });
        let mut tensors = of.given.clone();
        (run(self.kernel, &program, &of.problem, &mut tensors), tensors)
    }

    /// What is found, or else what is wrong. The bits of the kernel as it is are right.
    fn found(&self, line: usize, instead: &str, of: &Case) -> Option<String> {
        let (report, tensors) = self.run(line, instead, of, false);
        let wrong = || match self.whole(of).1.gives(&tensors) {
            true => None,
            false => tensors.wrong(&self.kernel.plan, &of.problem),
        };
        report.findings.first().map(|f| format!("{:?}", f.kind)).or_else(wrong)
    }

    fn paths(&self, line: usize, instead: &str, of: &Case) -> Vec<Path> {
        self.run(line, instead, of, true).0.paths
    }
}

/// What stands for an instruction that is gone: nothing, or for a test the answer that there is nothing to wait for.
fn without(line: &str) -> String {
    let test = line.trim_start().strip_prefix("mbarrier.t").and_then(|rest| rest.split_once(' '));
    let predicate = test.and_then(|(_, rest)| rest.trim_start().split_once(','));
    predicate.map_or_else(String::new, |(p, _)| format!("setp.eq.u32 {p}, 0, 0;"))
}

/// Pairs of accesses, by PTX line, and the lines that order each.
fn ordered(paths: &[Path]) -> BTreeMap<(u32, u32), Vec<&Path>> {
    let mut pairs: BTreeMap<(u32, u32), Vec<&Path>> = BTreeMap::new();
    for path in paths {
        pairs.entry((path.first.ptx_line, path.then.ptx_line)).or_default().push(path);
    }
    pairs
}

/// Why nothing is missed where a line is gone: the paths that remain. `Err` where accesses that it ordered have no other path.
fn redundant(of: &Changed<'_>, line: usize, case: &Case, before: &[Path]) -> Result<Vec<String>, String> {
    let (number, removed) = (line as u32 + 1, of.lines[line]);
    let after = of.paths(line, &without(removed), case);
    let (before, after) = (ordered(before), ordered(&after));
    let mut said = Vec::new();
    for (pair, paths) in &before {
        if !paths.iter().any(|path| path.by.iter().any(|s| s.ptx_line == number)) {
            continue;
        }
        // A copy that arrived here arrives by another wait, or when its thread ends; one that was put into a group here is in another,
        // or is waited for without one.
        let instead = |path: &&&Path| {
            let by = &path.then.opcode;
            let waits = by.contains(".wait_") || matches!(by.as_str(), "ret" | "exit");
            waits || !removed.contains(".wait_") && by.contains(".commit_")
        };
        let others = match pair.1 == number {
            true => after.iter().filter(|(p, _)| p.0 == pair.0).flat_map(|(_, p)| p).find(instead),
            false => after.get(pair).and_then(|paths| paths.first()),
        };
        match others {
            Some(path) => said.push(path.to_string()),
            None => return Err(format!("lines {pair:?} are ordered by nothing else, {}", case.problem)),
        }
    }
    Ok(said)
}

/// Removes each in turn, for problems that are drawn.
fn each(kernel: &Kernel, problems: u64, elements: i64) -> (usize, usize) {
    let mut drawn: Vec<Problem> = kernel.problems(problems, elements).collect();
    // Where K is long, what follows a barrier depends on it.
    drawn.sort_by_key(|p| std::cmp::Reverse(p.layouts[0].layout.shape().get(1).copied()));
    each_on(kernel, drawn)
}

/// Removes each in turn. Returns how many are needed, and how many are not.
fn each_on(kernel: &Kernel, drawn: Vec<Problem>) -> (usize, usize) {
    each_of(kernel, ptx(kernel), drawn)
}

/// Of that text.
pub(crate) fn each_of(kernel: &Kernel, text: &str, drawn: Vec<Problem>) -> (usize, usize) {
    each_like(kernel, text, "", drawn)
}

/// Those with these words.
fn each_like(kernel: &Kernel, text: &str, words: &str, drawn: Vec<Problem>) -> (usize, usize) {
    let of = Changed { kernel, lines: text.lines().collect() };
    let is_sync =
        |l: &&str| !l.trim_start().starts_with("//") && l.contains(words) && SYNCS.iter().any(|s| l.contains(s));
    let all: Vec<usize> = (0..of.lines.len()).filter(|i| is_sync(&of.lines[*i])).collect();
    let drawn = Case::all(kernel, drawn);
    // The paths of the kernel as it is, by problem.
    let mut whole: BTreeMap<usize, Vec<Path>> = BTreeMap::new();
    let (mut needed, mut spare) = (0, 0);
    for line in all {
        let name = format!("{} without line {} ({})", kernel.unit.files()[0].name, line + 1, of.lines[line].trim());
        let comes_by = |p: &usize| of.whole(&drawn[*p]).0.contains(&(line as u32 + 1));
        let reached: Vec<usize> = (0..drawn.len()).filter(comes_by).take(4).collect();
        assert!(!reached.is_empty(), "{name}: no problem comes by");
        let found = reached.iter().find_map(|p| of.found(line, &without(of.lines[line]), &drawn[*p]));
        if let Some(found) = found {
            needed += 1;
            println!("{name}: {}", found.lines().next().unwrap_or_default());
            continue;
        }
        spare += 1;
        let mut paths = Vec::new();
        // Two problems that come by it, or all.
        for p in reached.into_iter().take(if whole::is_asked_for() { usize::MAX } else { 2 }) {
            let whole = whole.entry(p).or_insert_with(|| of.paths(0, of.lines[0], &drawn[p]));
            paths.extend(redundant(&of, line, &drawn[p], whole).unwrap_or_else(|e| panic!("{name}: {e}")));
        }
        paths.sort();
        paths.dedup();
        match paths.as_slice() {
            [] if name.contains("setmaxnreg.inc") => println!("{name}: it asks for registers, and orders nothing"),
            [] if name.contains("fence.mbarrier_init") => {
                println!("{name}: the barrier behind it publishes as much to one block")
            }
            [] if name.contains("griddepcontrol.wait") => {
                println!("{name}: who asked for the k-tiles has waited, and told with them")
            }
            [] => println!("{name}: no two accesses that conflict lie on both sides of it"),
            paths => println!("{name}: what it orders is ordered by\n  {}", paths.join("\n  ")),
        }
    }
    (needed, spare)
}

#[test]
fn barriers_of_tiles_are_needed() {
    assert_eq!(each(&sgemm(NAIVE), 8, 20_000), (0, 0));
    assert_eq!(each(&apply(), 8, 5_000), (0, 0));
    let (needed, spare) = each(&sgemm(TILED), 30, 60_000);
    assert!(needed >= 4, "{needed} needed, {spare} not");
}

#[test]
fn barriers_waits_and_commits_of_stages_are_needed_or_explained() {
    // In each of the two main loops all but the last wait, after which nobody reads the stages again.
    assert_eq!(each(&sgemm(STAGED), 60, 60_000), (13, 2));
}

#[test]
fn barriers_waits_and_commits_of_parts_of_k_are_needed_or_explained() {
    // Long enough for a part to come back to the stage it began with. Of two stages a wait takes all copies, in a group or not:
    // the commits are spare, and the last waits.
    assert_eq!(each(&sgemm(SPLIT), 240, 200_000), (8, 5));
}

#[test]
fn barriers_waits_and_commits_of_tensor_cores_are_needed_or_explained() {
    let kernel = gemm(CORES, Arch::Sm80);
    // Two commits, a wait and a barrier ahead of the loop, one of each in it, and barriers behind each of four parts of D where it is
    // written, and where it is read.
    assert_eq!(each_on(&kernel, products(&kernel, &LONG)), (15, 0));
}

const LONG: [[i64; 3]; 4] = [[70, 61, 176], [33, 65, 16], [140, 20, 112], [140, 21, 112]];

/// These, and one of which A and B are packed first.
fn and_packed(kernel: &Kernel, sizes: &[[i64; 3]]) -> Vec<Problem> {
    [products(kernel, sizes), products(kernel, &[[33, 65, 15]])].into_iter().flatten().collect()
}

/// More tiles than seven CTAs compute as a whole.
const BY_TURNS: [[i64; 3]; 2] = [[300, 200, 48], [300, 201, 40]];

/// The text is one of the catalogue that a sample does not have: with `CUTEMPLATE_WHOLE=1`.
#[test]
#[ignore = "needs CUTEMPLATE_WHOLE=1, which compiles all of the catalogue"]
fn commits_of_two_stages_are_spare() {
    assert!(whole::is_asked_for(), "found no CUTEMPLATE_WHOLE=1");
    // Of two stages a wait takes all copies, in a group or not.
    let kernels: Vec<Kernel> = catalogue().into_iter().filter(|k| k.plan.name().contains("stages2")).collect();
    let [kernel] = &kernels[..] else { panic!("one of two stages") };
    assert_eq!(each_of(kernel, &shipped(&kernels)[0], products(kernel, &BY_TURNS)), (12, 2));
}

#[test]
fn barriers_and_waits_of_warpgroups_are_needed() {
    // Where D is stored element by element, the barriers behind a tile's parts order what the one ahead of the tile would. What asks for
    // registers orders nothing, and what publishes the initialisation of barriers is for peers.
    let kernel = gemm(WARPGROUPS, Arch::Sm90a);
    assert_eq!(each_on(&kernel, and_packed(&kernel, &LONG)), (43, 7));
}

/// Four tiles for one block, and more k-tiles than stages: each team has a second turn, and comes back to stages that were filled anew. Of
/// two, A has fewer rows than a box.
const TURNS: [[i64; 3]; 5] = [[120, 120, 80], [120, 117, 80], [200, 60, 16], [40, 120, 80], [40, 117, 80]];

pub(crate) const TEAMS: &str = "schedule=pingpong\nout=f32\ntile=64x32x16\nstages=2\ncluster=1x1\nctas=1";

#[test]
fn barriers_and_waits_of_teams_are_needed() {
    let kernel = gemm(TEAMS, Arch::Sm90a);
    assert_eq!(each_on(&kernel, and_packed(&kernel, &TURNS)), (51, 6));
}

/// A tile of D of which there are buffers for three parts of four; of the last tile the fourth is written to a stage of A.
pub(crate) const KEPT: &str = "tile=64x256x64\nstages=5\ncluster=1x1\nctas=1";

/// Several tiles for one block, with more k-tiles than parts, and fewer.
const OVERLAPPING: [[i64; 3]; 3] = [[40, 520, 64], [40, 520, 72], [40, 264, 328]];

#[test]
fn barriers_and_waits_of_tiles_that_are_kept_are_needed() {
    // A copy of the last tile arrives when its thread ends, in a group or not; buffers that were never written need no wait.
    let kernel = gemm(KEPT, Arch::Sm90a);
    assert_eq!(each_on(&kernel, and_packed(&kernel, &OVERLAPPING)), (88, 13));
}

#[test]
fn waits_for_buffers_that_are_a_ring_are_needed() {
    // Four parts for three buffers: a tile begins where the one before has ended, the last one at the first again, for which it waits until
    // all are read, so that the waits of its first three parts are spare.
    let kernel = gemm(RING, Arch::Sm90a);
    let problems = products(&kernel, &[[200, 104, 32], [130, 104, 520]]);
    assert_eq!(each_like(&kernel, ptx(&kernel), "cp.async.bulk.wait_group", problems), (10, 3));
}

/// Several tiles for a cluster of two blocks.
const TILES: [[i64; 3]; 2] = [[260, 20, 48], [258, 19, 32]];
/// The same in two columns.
const COLUMNS: [[i64; 3]; 2] = [[260, 68, 48], [258, 67, 32]];

pub(crate) const CLUSTERS: &str = "out=f32\ntile=128x64x16\nstages=2\ncluster=2x1\nctas=2";

#[test]
fn barriers_and_waits_of_clusters_are_needed() {
    let kernel = gemm(CLUSTERS, Arch::Sm90a);
    // Before a block ends it waits for all of its stages: for the last one is enough.
    assert_eq!(each_on(&kernel, and_packed(&kernel, &whole::of(&TILES, &COLUMNS))), (51, 7));
}

#[test]
fn barriers_and_waits_of_parts_of_a_cluster_are_needed() {
    // A warp's own barrier ahead of what it tells is spare where products or stores have brought its lanes together.
    let kernel = gemm(PART, Arch::Sm90a);
    assert_eq!(each_on(&kernel, and_packed(&kernel, &PARTS)), (61, 6));
}

/// Two blocks for each tile.
pub(crate) const PART: &str = "out=f32\ntile=64x32x16\nstages=2\ncluster=1x1\nsplit_k=2\nctas=2";

/// Several tiles for a cluster of two blocks, with fewer k-tiles for the second block, and none. Of two, A has fewer rows than a box.
const PARTS: [[i64; 3]; 4] = [[100, 68, 80], [70, 67, 48], [60, 30, 16], [60, 68, 48]];

/// Tiles that two clusters share: as large parts, a part of which one has the rest, and one in two parts beside whole tiles. Of two, A has
/// fewer rows than a box.
const SHARED: [[i64; 3]; 5] = [[100, 30, 96], [100, 60, 48], [300, 70, 112], [60, 90, 96], [60, 92, 96]];

#[test]
fn barriers_and_waits_of_tiles_that_are_shared_are_needed() {
    let kernel = gemm(STREAM, Arch::Sm90a);
    assert_eq!(each_on(&kernel, and_packed(&kernel, &SHARED)), (48, 6));
}

/// The same instruction with another count, other bytes, or another parity.
fn other(line: &str) -> Vec<String> {
    let last = |value: &str| line.rsplit_once(',').map(|(before, _)| format!("{before}, {value};"));
    let guarded = line.trim_start();
    let unguarded = guarded.strip_prefix('@').and_then(|rest| rest.split_once(' ')).map_or(guarded, |(_, rest)| rest);
    let Some(name) = unguarded.split(' ').next() else { return Vec::new() };
    let parity = |value: &str| {
        let parts: Vec<&str> = line.split(',').collect();
        (parts.len() == 4).then(|| format!("{},{}, {value},{}", parts[0], parts[1], parts[3]))
    };
    match name {
        n if n.starts_with("mbarrier.init") => last("5").into_iter().collect(),
        n if n.contains("expect_tx") => [last("4096"), last("1048575")].into_iter().flatten().collect(),
        n if n.starts_with("mbarrier.try_wait.parity") => [parity("0"), parity("1")].into_iter().flatten().collect(),
        n if n.starts_with("mbarrier.arrive.shared") || n.starts_with("mbarrier.arrive.release") => {
            vec![line.replace("];", "], 2;")]
        }
        n if n.starts_with("setmaxnreg.dec") => vec![format!("{n} 160;")],
        n if n.starts_with("setmaxnreg.inc") => vec![format!("{n} 248;")],
        n if n.starts_with("wgmma.wait_group") => {
            vec![if line.contains(" 0;") { line.replace(" 0;", " 1;") } else { line.replace(" 1;", " 2;") }]
        }
        _ => Vec::new(),
    }
}

/// Each of a kernel in turn: how many there are, all of them found.
fn each_other(kernel: &Kernel, problems: &[Problem]) -> usize {
    let text = ptx(kernel);
    let of = Changed { kernel, lines: text.lines().collect() };
    let problems = Case::all(kernel, problems.iter().cloned());
    let (mut missed, mut count) = (Vec::new(), 0);
    for line in 0..of.lines.len() {
        for instead in other(of.lines[line]) {
            let found = problems.iter().find_map(|case| of.found(line, &instead, case));
            println!("line {}: {}: {found:?}", line + 1, instead.trim());
            count += 1;
            if found.is_none() {
                missed.push((line, instead));
            }
        }
    }
    assert!(missed.is_empty(), "{missed:?}");
    count
}

#[test]
fn counts_bytes_and_parities_that_are_wrong_are_found() {
    let kernel = gemm(WARPGROUPS, Arch::Sm90a);
    assert_eq!(each_other(&kernel, &products(&kernel, &LONG)), 32);
}

#[test]
fn counts_and_parities_of_parts_of_a_cluster_that_are_wrong_are_found() {
    let kernel = gemm(PART, Arch::Sm90a);
    assert_eq!(each_other(&kernel, &products(&kernel, &PARTS)), 36);
}

#[test]
fn counts_and_parities_of_turns_that_are_wrong_are_found() {
    let kernel = gemm(TEAMS, Arch::Sm90a);
    assert_eq!(each_other(&kernel, &products(&kernel, &TURNS)), 42);
}
