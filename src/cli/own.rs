//! `cutemplate check kernels/rope.cu`: what is in a file of CUDA C++.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, ExitCode};

use cutemplate::arch::{Arch, Targets};
use cutemplate::build::{Compiled, Compiler, ListedEntry, ListedParam, Listing};
use cutlass_sys::Finder;
use serde_json::json;

use crate::cli::args::CheckArgs;
use crate::cli::output::{self, Failure, HEADING, Output};
use crate::cli::progress::{Fetching, on_terminal};

/// Whether an argument names a file of CUDA C++, and no family.
pub(crate) fn is_file(kernel: &str) -> bool {
    Path::new(kernel).extension().is_some_and(|end| end == "cu" || end == "cuh")
}

pub(crate) fn check(args: &CheckArgs, out: &Output) -> Result<ExitCode, Failure> {
    let (path, targets) = (Path::new(&args.kernel.kernel), Targets::new(args.kernel.arch.iter().copied()));
    let targets = targets.unwrap_or_default();
    let finder = Finder::from_env();
    // Plain CUDA needs no CUTLASS, and what a file includes is known to nvcc alone.
    let absent = !finder.env().fetch_allowed() && matches!(finder.locate_cutlass(), Ok(None));
    let of = if absent { Compiler::of_cuda } else { Compiler::new };
    let compiler = of(&finder, &mut Fetching::new(out)).map_err(Failure::message)?;
    let listed = on_terminal(out, "compiles the file", || compiler.list(path, &targets));
    let Listing { entries, compiled } = listed.map_err(Failure::message)?;
    if entries.is_empty() {
        let what = "found no __global__ function that nvcc compiles, required one; a template is compiled where it is instantiated";
        return Err(Failure::message(format_args!("{}: {what}", path.display())));
    }
    for warning in &compiled.manifest().warnings {
        out.text(warning);
    }
    let disassembler = finder.disassembler(&mut Fetching::new(out)).ok();
    for entry in &entries {
        out.text(format_args!("{HEADING}{}{HEADING:#}\n{}", name(&entry.symbol), head(entry)));
        let mut on = Vec::new();
        for arch in targets.archs() {
            let Some(row) = compiled.manifest().entry_on(&entry.symbol, arch.name()) else { continue };
            let mix =
                disassembler.as_ref().and_then(|tools| mix(&tools.cuobjdump.path, &compiled, *arch, &entry.symbol));
            out.text(format_args!(
                "  {:8} {} registers, {} B shared memory, {} B stack, {} B spill stores, {} B spill loads\n           {}",
                arch.name(),
                row.registers,
                row.smem,
                row.stack,
                row.spill_stores,
                row.spill_loads,
                mix.as_ref().map_or("no cuobjdump, which counts the instructions".to_owned(), words)
            ));
            on.push(json!({ "resources": row, "mix": mix }));
        }
        out.object(json!({ "file": output::path(path), "name": name(&entry.symbol), "entry": entry, "on": on }));
    }
    Ok(ExitCode::SUCCESS)
}

/// The symbol as C++ writes it.
fn name(symbol: &str) -> String {
    let demangled = cpp_demangle::Symbol::new(symbol).ok().and_then(|symbol| symbol.demangle().ok());
    demangled.unwrap_or_else(|| symbol.to_owned())
}

fn head(entry: &ListedEntry) -> String {
    let three = |of: [u32; 3]| of.map(|n| n.to_string()).join(" x ");
    let mut lines: Vec<String> = Vec::new();
    for (number, ListedParam { size, align, ty }) in (1..).zip(&entry.params) {
        let bytes = if *size == 1 { "byte" } else { "bytes" };
        lines.push(format!("  parameter {number}: {size} {bytes} at a multiple of {align}, {ty}"));
    }
    lines.extend(entry.required_block.map(|block| format!("  exactly {} threads a block", three(block))));
    lines.extend(entry.most_threads.map(|most| format!("  at most {} threads a block", three(most))));
    lines.extend(entry.cluster.map(|cluster| format!("  clusters of {} blocks", three(cluster))));
    if entry.dynamic_shared {
        lines.push("  dynamic shared memory: each launch gives its bytes".to_owned());
    }
    lines.join("\n")
}

/// Kinds of instructions of SASS, by how their names begin; the first that fits counts.
const KINDS: [(&str, &[&str]); 10] = [
    ("copies", &["LDGSTS", "UTMA", "UBLKCP"]),
    ("local", &["LDL", "STL"]),
    ("shared", &["LDS", "STS", "ATOMS"]),
    ("constant", &["LDC", "ULDC"]),
    ("global", &["LDG", "STG", "LD", "ST", "RED", "ATOM"]),
    ("tensor core", &["HMMA", "HGMMA", "IMMA", "IGMMA", "DMMA", "QGMMA", "QMMA", "BMMA", "OMMA"]),
    ("barrier", &["BAR", "SYNCS", "WARPSYNC", "DEPBAR", "MEMBAR", "FENCE", "LDGDEPBAR"]),
    ("control", &["BRA", "EXIT", "BSSY", "BSYNC", "CALL", "RET", "BRX", "JMP", "BREAK", "WARPGROUP"]),
    (
        "float",
        &[
            "FADD", "FMUL", "FFMA", "FSETP", "FSEL", "FMNMX", "HADD", "HMUL", "HFMA", "DADD", "DMUL", "DFMA", "MUFU",
            "F2", "I2F", "FCHK",
        ],
    ),
    ("other", &[""]),
];

/// How many instructions of each kind an entry has on an architecture.
fn mix(cuobjdump: &Path, compiled: &Compiled, arch: Arch, symbol: &str) -> Option<BTreeMap<&'static str, usize>> {
    let arguments = ["-sass", "-arch", arch.name(), "-fun", symbol];
    let output = Command::new(cuobjdump).args(arguments).arg(compiled.path()).output().ok()?;
    let mut counts = BTreeMap::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        // `/*0040*/  @!P0 LDG.E R2, [R2.64] ;`
        let Some((address, rest)) = line.trim().strip_prefix("/*").and_then(|line| line.split_once("*/")) else {
            continue;
        };
        let words = rest.split_whitespace().find(|word| !word.starts_with('@') && !word.starts_with("/*"));
        let (Some(opcode), true) = (words, address.len() == 4) else { continue };
        let kind = KINDS.iter().find(|(_, starts)| starts.iter().any(|start| opcode.starts_with(start)));
        // What fills the code up behind its end does not run.
        if let Some((kind, _)) = kind.filter(|_| !opcode.starts_with("NOP")) {
            *counts.entry(*kind).or_insert(0) += 1;
        }
    }
    (!counts.is_empty()).then_some(counts)
}

fn words(mix: &BTreeMap<&'static str, usize>) -> String {
    let all: usize = mix.values().sum();
    let kinds: Vec<String> =
        KINDS.iter().filter_map(|(kind, _)| mix.get(kind).map(|count| format!("{count} {kind}"))).collect();
    format!("{all} instructions: {}", kinds.join(", "))
}
