//! What mode `races` costs texts by hand: its time over that of a plain run.
//!
//! `cargo test --release -p ptx-exec --test exec -- --ignored --nocapture speed::`

use ptx_exec::Module;

use crate::hopper::Case;
use crate::ratios::Ratios;
use crate::wgmma::{filled, ones};

/// A loop of one group of products, by one warpgroup, of what its threads have written.
fn products(n: u32) -> Case {
    let case = filled(n, &ones()).with("0x0000002000080000", "0x0000001000080000");
    let first = case.body.find("wgmma.fence").expect("a fence");
    let last = case.body.find("wgmma.wait_group").expect("a wait");
    let text = format!(
        "mov.u32 %r30, 0;\nLOOP:\n{}wgmma.wait_group.sync.aligned 0;\nadd.u32 %r30, %r30, 1;\nsetp.lt.u32 %p5, %r30, 500;\n@%p5 bra LOOP;\n",
        &case.body[first..last]
    );
    Case { body: format!("{}{text}{}", &case.body[..first], &case.body[last..]), ..case }
}

#[test]
#[ignore = "measures times, in a release build"]
fn races_of_products_cost_at_most_eight_times() {
    let mut all = Ratios::new(8.0);
    for n in [8, 64, 128] {
        let case = products(n);
        let module = Module::parse(case.text()).expect("PTX");
        let mut out = vec![0_u8; case.out];
        all.of(&format!("a loop of products m64n{n}k16"), |modes| {
            let launch = module.launch("k").expect("an entry").grid(&[case.blocks]).block(&[case.threads]);
            let launch = launch.output("out", &mut out).input("in", &case.input).arg_tensor_map(1, 0, case.spec);
            launch.modes(modes).workers(1).run().expect("it runs")
        });
    }
    all.judge();
}

/// Many warps add to counters again and again: to one, to a few, or to 1024 in global memory. Another variant counts in shared memory,
/// and adds the sums to global memory at the end.
fn counters(body: &str) -> String {
    format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 out)\n{{\n.reg .pred %p;\n.reg .b32 %r<40>;\n.reg .b64 %d<9>;\n\
         .shared .align 16 .b8 s[4096];\nld.param.u64 %d1, [out];\nmov.u32 %r1, %tid.x;\nmov.u32 %r2, %ctaid.x;\n\
         mad.lo.u32 %r3, %r2, 256, %r1;\nmov.u32 %r4, 0;\nmov.u32 %r5, s;\nshl.b32 %r6, %r1, 2;\nadd.u32 %r7, %r5, %r6;\n\
         st.shared.u32 [%r7], 0;\nst.shared.u32 [%r7+1024], 0;\nst.shared.u32 [%r7+2048], 0;\nst.shared.u32 [%r7+3072], 0;\nbar.sync 0;\n\
         LOOP:\nmad.lo.u32 %r8, %r4, 747796405, %r3;\nmul.lo.u32 %r8, %r8, 277803737;\nshr.u32 %r8, %r8, 20;\nand.b32 %r8, %r8, 4092;\n\
         cvt.u64.u32 %d2, %r8;\nadd.u64 %d2, %d1, %d2;\nadd.u32 %r9, %r5, %r8;\n{body}\nadd.u32 %r4, %r4, 1;\nsetp.lt.u32 %p, %r4, 32;\n\
         @%p bra LOOP;\nbar.sync 0;\nld.shared.u32 %r10, [%r7];\ncvt.u64.u32 %d3, %r6;\nadd.u64 %d3, %d1, %d3;\n\
         red.global.add.u32 [%d3], %r10;\nret;\n}}\n"
    )
}

/// Each atomic is looked at lane by lane: which accesses of its place it is ordered after, and what was released there.
#[test]
#[ignore = "measures times, in a release build"]
fn races_of_atomics_cost_at_most_a_hundred_times() {
    let mut all = Ratios::new(100.0);
    for (name, body) in [
        ("one counter", "red.global.add.u32 [%d1], 1;"),
        ("one counter, with what it was", "atom.global.add.u32 %r11, [%d1], 1;"),
        ("1024 counters", "red.global.add.u32 [%d2], 1;"),
        ("1024 counters of a block", "atom.shared.add.u32 %r11, [%r9], 1;"),
        ("a counter of each thread", "red.shared.add.u32 [%r7], 1;"),
    ] {
        let module = Module::parse(counters(body)).expect("PTX");
        let mut out = vec![0_u8; 4096];
        all.of(name, |modes| {
            let launch = module.launch("k").expect("an entry").grid(&[32]).block(&[256]).output("out", &mut out);
            launch.modes(modes).workers(1).run().expect("it runs")
        });
    }
    all.judge();
}
