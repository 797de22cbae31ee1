//! Contract: the machine code of the catalogue's kernels loads 16 bytes with a vector load wherever the plan has vectors of 16
//! bytes, and keeps everything in registers, on every target.
#![cfg(all(target_os = "linux", feature = "build"))]

use std::process::Command;

use cutemplate::arch::Targets;
use cutemplate::build::Compiler;
use cutemplate::emit::render;
use cutemplate::recipe::{ElementwiseAdd, FAMILIES, Recipe, Settings};
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
                let what = format!("{} on {arch}: {wide:?} of 16 bytes, {split:?} of 8", plan.name());
                if settings.contains("variant=naive") {
                    assert_eq!((wide, split), ([0, 0], [0, 0]), "{what}");
                    continue;
                }
                assert!(wide[0] > 0 && wide[1] + split[1] > 0, "{what}");
                if plan.family() == ElementwiseAdd::FAMILY {
                    // nvcc 13.0 keeps all vectors whole but the first store, whose address it knows under another type.
                    assert!(wide[1] > 0 && split[0] == 0 && split[1] <= 2, "{what}");
                }
            }
        }
    }
}
