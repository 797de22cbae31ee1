//! Contract: the machine code of the catalogue's kernels loads 16 bytes with a vector load wherever the plan has vectors of 16
//! bytes, and keeps everything in registers, on every target; and where a kernel reads shared memory element by element, it loads
//! at once what the plan says.
#![cfg(all(target_os = "linux", feature = "build"))]

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use cutemplate::arch::{Arch, Targets};
use cutemplate::build::{Compiled, Compiler};
use cutemplate::digest::Digest;
use cutemplate::emit::render;
use cutemplate::plan::Plan;
use cutemplate::recipe::sgemm::Variant;
use cutemplate::recipe::{Attention, Gemm, Recipe, Sgemm, TopK};
use cutlass_sys::{Disassembler, Finder};

use crate::resources::catalogue;

/// Counts of the opcodes that start with `prefix`, one line of SASS each.
fn count(sass: &str, opcode: &str) -> usize {
    let is = |word: &str| word.trim_end_matches(';') == opcode;
    sass.lines().filter(|line| line.split_whitespace().any(is)).count()
}

/// What cuobjdump prints of a kernel's machine code: of the same bytes once, since it takes longer than all else here.
fn sass(tools: &Disassembler, compiled: &Compiled, arch: Arch) -> String {
    let tool = tools.cuobjdump.path.display();
    let key = Digest::of(format!("{} {tool} {arch}", Digest::of(compiled.fatbin())).as_bytes());
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("sass-{key}"));
    if let Ok(text) = fs::read_to_string(&kept) {
        return text;
    }
    let arguments = ["-sass", "-arch", arch.name()];
    let output = Command::new(&tools.cuobjdump.path).args(arguments).arg(compiled.path()).output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut part = tempfile::NamedTempFile::new_in(env!("CARGO_TARGET_TMPDIR")).expect("target can be written");
    part.write_all(text.as_bytes()).expect("target can be written");
    part.persist(&kept).expect("target can be written");
    text
}

#[test]
fn vectors_are_16_bytes_in_sass() {
    let finder = Finder::from_env();
    let compiler = Compiler::new(&finder, &mut ()).expect("nvcc is fetched in this workspace");
    let tools = finder.disassembler(&mut ()).expect("cuobjdump is fetched in this workspace");
    let (plans, all): (Vec<Plan>, Vec<_>) =
        catalogue().into_iter().map(|(plan, unit)| (plan.clone(), (unit, plan.targets().clone()))).unzip();
    for (compiled, plan) in compiler.compile_all(&all).into_iter().zip(plans) {
        let compiled = compiled.unwrap_or_else(|e| panic!("{e}"));
        let manifest = compiled.manifest();
        assert!(!manifest.spills() && !manifest.uses_local_memory(), "{manifest}");
        for arch in plan.targets().archs() {
            let sass = sass(&tools, &compiled, *arch);
            let has = |opcode: &str| sass.lines().any(|line| line.contains(opcode));
            if plan.family() == Gemm::FAMILY {
                // Tensor cores multiply; tiles come by TMA, or by cp.async of 16 bytes and ldmatrix.
                // Those of 8-bit floats are QMMA and QGMMA, those of integers IMMA and IGMMA.
                let multiplies = |opcode: &str| ["H", "Q", "I"].iter().any(|of| has(&format!(" {of}{opcode}")));
                let [tma_load, tma_store, copies, matrices] = ["UTMALDG", "UTMASTG", "LDGSTS", "LDSM"].map(has);
                let found = [multiplies("MMA"), multiplies("GMMA"), tma_load, tma_store, copies, matrices];
                let tma = *arch == Arch::Sm90a;
                assert_eq!(found, [!tma, tma, tma, tma, !tma, !tma], "{} on {arch}", plan.name());
                continue;
            }
            if plan.family() == Attention::FAMILY {
                // Rows come by TMA, or by cp.async of 16 bytes and ldmatrix. O leaves in vectors of 16 bytes, and sums of splits as
                // tensor cores have them.
                let opcodes = [" HMMA", " HGMMA", "UTMALDG", "LDGSTS", "LDSM", "STG.E.128"];
                let found = opcodes.map(has);
                let tma = plan.params().has_tensor_maps();
                let whole = plan.settings().get("paged") != Some("true");
                assert_eq!(found, [!tma, tma, tma, !tma, !tma, whole], "{} on {arch}", plan.name());
                continue;
            }
            let wide = ["LDG.E.128", "STG.E.128"].map(|op| count(&sass, op));
            let split = ["LDG.E.64", "STG.E.64"].map(|op| count(&sass, op));
            let what = format!("{} on {arch}: {wide:?} of 16 bytes, {split:?} of 8", plan.name());
            // Their threads read element by element.
            if plan.settings().get("variant") == Some("naive") {
                assert_eq!((wide, split), ([0, 0], [0, 0]), "{what}");
                continue;
            }
            if plan.family() == Sgemm::FAMILY && plan.shared().iter().all(|tensor| tensor.accesses[0].bytes.0 == 4) {
                // The rungs below `vectorized` move single elements.
                assert_eq!(wide, [0, 0], "{what}");
                continue;
            }
            let copies = sass.lines().filter(|line| line.contains("LDGSTS") && line.contains(".128")).count();
            // One value for a row is stored by itself, and so is each of the largest.
            let of_rows = plan.operands().last().is_some_and(|output| output.strides.len() == 1);
            let one_by_one = of_rows || plan.family() == TopK::FAMILY;
            assert!(wide[0] + copies > 0 && (one_by_one || wide[1] + split[1] > 0), "{what}");
        }
    }
}

#[test]
fn loads_of_shared_memory_are_those_of_the_plan() {
    let finder = Finder::from_env();
    let compiler = Compiler::new(&finder, &mut ()).expect("nvcc is fetched in this workspace");
    let tools = finder.disassembler(&mut ()).expect("cuobjdump is fetched in this workspace");
    let targets = Targets::default();
    let swizzled = Sgemm { smem_a: "Sw<1,2,4>".parse().expect("a swizzle"), ..Sgemm::rung(Variant::Block2d) };
    for recipe in
        [Sgemm::rung(Variant::SmemTiled), Sgemm::rung(Variant::Block1d), Sgemm::rung(Variant::Block2d), swizzled]
    {
        let plan = recipe.plan(&targets).expect("a recipe");
        let compiled = compiler.compile(&render(&plan), &targets).unwrap_or_else(|e| panic!("{e}"));
        let sass = sass(&tools, &compiled, Arch::Sm90a);
        let found = ["LDS", "LDS.128"].map(|op| count(&sass, op));
        // The loop over the columns of a tile is unrolled, so that each request of a warp is an instruction; tiles that are whole
        // have a main loop, and those at the edges another.
        let loops = 2;
        let warps = u64::from(plan.threads()) / 32;
        let loads = plan.shared().iter().filter_map(|tensor| tensor.accesses.last());
        let of = |bytes: u64| loads.clone().filter(move |load| load.bytes.0 == bytes).map(|load| load.requests / warps);
        assert_eq!(found, [4, 16].map(|bytes| loops * of(bytes).sum::<u64>() as usize), "{plan}");
    }
}
