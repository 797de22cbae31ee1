//! Contract: the machine code of the default kernels moves 16 bytes with a vector load or store, and keeps everything in
//! registers, on every target.
#![cfg(all(target_os = "linux", feature = "build"))]

use std::process::Command;

use cutemplate::arch::Targets;
use cutemplate::build::Compiler;
use cutemplate::emit::render;
use cutemplate::recipe::{FAMILIES, Settings};
use cutlass_sys::Finder;

/// Counts of the opcodes that start with `prefix`, one line of SASS each.
fn count(sass: &str, opcode: &str) -> usize {
    let is = |word: &str| word.trim_end_matches(';') == opcode;
    sass.lines().filter(|line| line.split_whitespace().any(is)).count()
}

#[test]
fn vectors_are_16_bytes_in_sass() {
    let finder = Finder::from_env();
    let compiler = Compiler::new(&finder, &mut ()).expect("nvcc is fetched in this workspace");
    let tools = finder.disassembler(&mut ()).expect("cuobjdump is fetched in this workspace");
    for family in FAMILIES {
        for settings in family.catalogue {
            let plan = family.plan(&Settings::parse_lines(settings), None, &Targets::default()).expect("catalogue");
            let compiled = compiler.compile(&render(&plan), plan.targets()).unwrap_or_else(|e| panic!("{e}"));
            let manifest = &compiled.manifest;
            assert!(!manifest.spills() && !manifest.uses_local_memory(), "{manifest}");
            for arch in plan.targets().archs() {
                let mut dump = Command::new(&tools.cuobjdump.path);
                let output = dump.args(["-sass", "-arch", arch.name()]).arg(&compiled.path).output().expect("it runs");
                let sass = String::from_utf8_lossy(&output.stdout);
                let wide = ["LDG.E.128", "STG.E.128"].map(|op| count(&sass, op));
                let split = ["LDG.E.64", "STG.E.64"].map(|op| count(&sass, op));
                assert!(wide.iter().all(|n| *n > 0), "{} on {arch}: {wide:?} 16-byte loads and stores", plan.name());
                // nvcc 13.0 keeps all vectors whole but the first store, whose address it knows under another type.
                assert!(split[0] == 0 && split[1] <= 2, "{} on {arch}: {split:?} vectors split in two", plan.name());
            }
        }
    }
}
