//! Each barrier, fence, wait and commit of this crate's kernels, taken out of their PTX in turn: it is missed, or another path orders
//! what it ordered, and the report prints that path.

use std::collections::BTreeMap;

use cutemplate::exec::ptx::{Modes, Options};
use cutemplate::exec::{FindingKind, Path};

use crate::kernels::{Kernel, Problem};
use crate::own::{BOUNDED, NAIVE, Ran, SPLIT, STAGED, TILED, aligned, apply, gemm, launch, program, ptx, sgemm};

const SYNCS: [&str; 9] = [
    "bar.sync",
    "bar.warp.sync",
    "barrier.sync",
    "membar",
    "fence",
    "cp.async.commit_group",
    "cp.async.wait_group",
    "cp.async.wait_all",
    "griddepcontrol.wait",
];
const RACES: Modes = Modes { bounds: false, init: true, races: true };

/// A kernel with one line of its PTX replaced.
struct Changed<'a> {
    kernel: &'a Kernel,
    lines: Vec<&'a str>,
}

impl Changed<'_> {
    fn run(&self, line: usize, instead: &str, modes: Modes, problem: &Problem, paths: bool) -> Ran {
        let mut lines = self.lines.clone();
        lines[line] = instead;
        let program = program(self.kernel, lines.join("\n")).with(Options { modes, paths, ..BOUNDED });
        launch(self.kernel, &program, problem)
    }
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
fn redundant(of: &Changed<'_>, line: usize, problem: &Problem, before: &[Path]) -> Result<Vec<String>, String> {
    let (number, removed) = (line as u32 + 1, of.lines[line]);
    let after = of.run(line, "", RACES, problem, true).report.paths;
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
            None => return Err(format!("lines {pair:?} are ordered by nothing else, {problem}")),
        }
    }
    Ok(said)
}

/// Removes each in turn, for problems that are drawn.
fn each(kernel: &Kernel, problems: u64, elements: i64) -> (usize, usize) {
    each_on(kernel, kernel.problems(problems, elements).collect())
}

/// Removes each in turn. Returns how many are needed, and how many are not.
fn each_on(kernel: &Kernel, mut drawn: Vec<Problem>) -> (usize, usize) {
    let text = ptx(kernel);
    let of = Changed { kernel, lines: text.lines().collect() };
    // Where K is long, what follows a barrier depends on it.
    drawn.sort_by_key(|p| std::cmp::Reverse(p.layouts[0].layout.shape().get(1).copied()));
    let is_sync = |l: &&str| !l.trim_start().starts_with("//") && SYNCS.iter().any(|s| l.contains(s));
    let all: Vec<usize> = (0..of.lines.len()).filter(|i| is_sync(&of.lines[*i])).collect();
    // The paths of the kernel as it is, by problem.
    let mut whole: BTreeMap<usize, Vec<Path>> = BTreeMap::new();
    let (mut needed, mut spare) = (0, 0);
    for line in all {
        let name = format!("{} without line {} ({})", kernel.unit.files()[0].name, line + 1, of.lines[line].trim());
        // A trap in its place tells which problems come by.
        let comes_by = |p: &&Problem| {
            let found = of.run(line, "trap;", Modes::PLAIN, p, false).report.findings;
            found.first().is_some_and(|f| f.kind == FindingKind::Trap)
        };
        let reached: Vec<usize> = (0..drawn.len()).filter(|p| comes_by(&&drawn[*p])).take(4).collect();
        assert!(!reached.is_empty(), "{name}: no problem comes by");
        let found = reached.iter().find_map(|p| {
            let ran = of.run(line, "", RACES, &drawn[*p], false);
            ran.report.findings.first().map(|f| format!("{:?}", f.kind)).or(ran.wrong)
        });
        if let Some(found) = found {
            needed += 1;
            println!("{name}: {}", found.lines().next().unwrap_or_default());
            continue;
        }
        spare += 1;
        let mut paths = Vec::new();
        for p in reached {
            let whole = whole.entry(p).or_insert_with(|| of.run(0, of.lines[0], RACES, &drawn[p], true).report.paths);
            paths.extend(redundant(&of, line, &drawn[p], whole).unwrap_or_else(|e| panic!("{name}: {e}")));
        }
        paths.sort();
        paths.dedup();
        match paths.as_slice() {
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
    let kernel = gemm("out=f32\ntile=128x64x16\nstages=3");
    // All but the last wait, which nobody reads after.
    assert_eq!(each_on(&kernel, aligned(&kernel).collect()), (5, 1));
}
