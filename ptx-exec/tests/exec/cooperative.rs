//! Cooperative launches: all blocks are resident and wait for each other. A kernel that needs one reports it in any other launch.

use ptx_exec::{ErrorKind, Modes, Module};
use ptx_exec::{Report, Rule};

/// Each block writes, all wait, and each reads a word of another block. The barrier is that of `grid.sync()`: one thread of each block
/// adds to a shared word. The first block adds so much that the top bit flips when all blocks have arrived.
fn module(sync: &str) -> Module {
    let text = format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out, .param .u64 sum)\n{{\n\
         .reg .pred %p<9>;\n.reg .b32 %r<20>;\n.reg .b64 %d<20>;\n\
         ld.param.u64 %d1, [out];\nld.param.u64 %d2, [sum];\nmov.u32 %r1, %tid.x;\nmov.u32 %r2, %ctaid.x;\nmov.u32 %r3, %nctaid.x;\n\
         mul.wide.u32 %d3, %r2, 4;\nadd.u64 %d4, %d1, %d3;\nst.global.u32 [%d4], %r2;\n{sync}\n\
         sub.u32 %r4, %r3, %r2;\nsub.u32 %r4, %r4, 1;\nmul.wide.u32 %d5, %r4, 4;\nadd.u64 %d6, %d1, %d5;\nld.global.u32 %r5, [%d6];\n\
         add.u64 %d7, %d2, %d3;\nst.global.u32 [%d7], %r5;\nret;\n}}\n"
    );
    Module::parse(text).expect("PTX")
}

const SYNC: &str = "mov.u32 %r6, %envreg2;\nmov.u32 %r7, %envreg1;\nmov.b64 %d8, {%r6, %r7};\nsetp.ne.u64 %p1, %d8, 0;\n@%p1 bra VALID;\ntrap;\n\
    VALID:\nbarrier.sync 0;\nsetp.ne.u32 %p2, %r1, 0;\n@%p2 bra MET;\nsetp.eq.u32 %p3, %r2, 0;\nsub.u32 %r8, 0x80000001, %r3;\n\
    selp.b32 %r9, %r8, 1, %p3;\natom.add.release.gpu.u32 %r10, [%d8+4], %r9;\nWAIT:\nld.acquire.gpu.u32 %r11, [%d8+4];\n\
    xor.b32 %r12, %r11, %r10;\nsetp.gt.s32 %p4, %r12, -1;\n@%p4 bra WAIT;\nMET:\nbarrier.sync 0;";

fn run(module: &Module, blocks: u32, cooperative: bool, seed: u64) -> (Report, Vec<u8>) {
    let (mut out, mut sum) = (vec![0_u8; 4 * blocks as usize], vec![0_u8; 4 * blocks as usize]);
    let launch = module.launch("k").expect("an entry").grid(&[blocks]).block(&[1]).output("out", &mut out);
    let launch = launch.output("sum", &mut sum).modes(Modes::ALL).seed(seed).cooperative(cooperative);
    let report = launch.step_budget(50_000_000).run().expect("it runs");
    (report, sum)
}

#[test]
fn blocks_of_a_cooperative_launch_wait_for_each_other() {
    let (once, twice) = (
        module(SYNC),
        module(&format!("{SYNC}\n{}", SYNC.replace("VALID", "VALID2").replace("WAIT", "WAIT2").replace("MET", "MET2"))),
    );
    for seed in 0..6 {
        for blocks in [1, 4, 9] {
            for module in [&once, &twice] {
                let (report, sum) = run(module, blocks, true, seed);
                assert!(report.is_clean(), "{report}");
                let want: Vec<u8> = (0..blocks).rev().flat_map(u32::to_le_bytes).collect();
                assert_eq!(sum, want, "seed {seed}, {blocks} blocks");
            }
        }
    }
    // Without the barrier of the grid the accesses race.
    let (report, _) = run(&module(""), 4, true, 0);
    assert!(report.findings.iter().any(|f| f.rule == Rule::GridOrder), "{report}");
}

#[test]
fn a_barrier_of_the_grid_in_another_launch_asks_for_a_cooperative_one() {
    let (report, _) = run(&module(SYNC), 4, false, 0);
    let finding = &report.findings[0];
    assert_eq!((report.findings.len(), finding.rule), (1, Rule::Cooperative));
    let text = finding.to_string();
    assert!(text.contains("\"cooperative\": true") && text.contains("Launch::cooperative(true)"), "{text}");
    assert!(!text.contains("undeclared"));
    // A kernel may test whether a grid barrier is allowed, and skip it.
    let asks = SYNC.replace("trap;", "bra MET;").replace("barrier.sync 0;", "");
    let (report, _) = run(&module(&asks), 1, false, 0);
    assert!(report.is_clean(), "{report}");
}

#[test]
fn a_cooperative_launch_has_as_many_blocks_as_are_resident() {
    let module = module(SYNC);
    let refused = |blocks: u32, threads: u32, smem: u32| {
        let launch = module.launch("k").expect("an entry").grid(&[blocks]).block(&[threads]).dynamic_smem(smem);
        let launch = launch.arg_bytes(&[0; 8]).arg_bytes(&[0; 8]).cooperative(true);
        launch.step_budget(10).run().err().map(|e| e.to_string())
    };
    for (threads, smem, most) in [(1, 0, 132 * 32), (1024, 0, 132 * 2), (32, 100 << 10, 132 * 2), (64, 227 << 10, 132)]
    {
        assert_eq!(refused(most, threads, smem), None);
        let text = refused(most + 1, threads, smem).expect("too many");
        assert!(text.contains("cooperative") && text.contains(&format!("at most {most}")), "{text}");
    }
}

#[test]
fn registers_that_a_driver_sets_are_refused_by_name() {
    for name in ["%envreg0", "%envreg3", "%envreg31", "%pm0", "%pm3_64", "%current_graph_exec"] {
        let module = module(&format!("mov.u32 %r6, {name};"));
        let error = module.launch("k").expect_err("it is not run");
        assert_eq!(error.kind, ErrorKind::Unsupported);
        let text = error.to_string();
        assert!(text.contains(name) && text.contains("special register") && !text.contains("undeclared"), "{text}");
    }
    for name in ["texref", "surfref", "samplerref"] {
        let text = format!(".version 8.0\n.target sm_90\n.address_size 64\n.global .{name} t;\n");
        let error = Module::parse(text).expect_err("it is not run");
        assert_eq!((error.kind, error.to_string().contains(name)), (ErrorKind::Unsupported, true), "{error}");
    }
    let error = module("mov.u32 %r6, %envreg;").launch("k").expect_err("no such name");
    assert!(error.to_string().contains("undeclared"));
}

#[test]
fn the_shared_memory_that_the_system_reserves_is_there_and_zero() {
    // Cooperative groups use the reserved memory for tiles of more than a warp: words from `%reserved_smem_offset_1` on, zero at first.
    let body = "mov.u32 %r6, %reserved_smem_offset_1;\nadd.u32 %r7, %r6, 284;\natom.shared.add.u32 %r8, [%r6], 3;\n\
                atom.shared.add.u32 %r9, [%r7], 4;\nadd.u32 %r10, %r8, %r9;\nst.global.u32 [%d4], %r10;";
    for (blocks, modes) in [(1, Modes::ALL), (3, Modes { races: false, ..Modes::ALL })] {
        let module = module(body);
        let (mut out, mut sum) = (vec![0xff_u8; 12], vec![0_u8; 12]);
        let launch =
            module.launch("k").expect("an entry").grid(&[blocks]).output("out", &mut out).output("sum", &mut sum);
        let report = launch.modes(modes).workers(1).run().expect("it runs");
        assert!(report.is_clean(), "{report}");
        assert!(out[..4 * blocks as usize].iter().all(|byte| *byte == 0), "{out:?}");
    }
    // Each block of a cluster has its own reserved memory, and an access beyond it is found.
    let stray = body.replace("284", "1024");
    let module = module(&stray);
    let (mut out, mut sum) = (vec![0_u8; 12], vec![0_u8; 12]);
    let launch =
        module.launch("k").expect("an entry").grid(&[2]).cluster(&[2]).output("out", &mut out).output("sum", &mut sum);
    let report = launch.run().expect("it runs");
    assert!(report.findings.iter().any(|f| f.rule == Rule::InBounds), "{report}");
}
