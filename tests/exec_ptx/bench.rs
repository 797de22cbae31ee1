//! How fast the executor is: `CUTEMPLATE_SPEED=1 cargo test --release --test exec_ptx -- --nocapture speed`.

use std::time::Instant;

use cutemplate::exec::ptx::{Modes, Module};

/// Whether times are to be measured, which says something in a release build alone.
pub(crate) fn is_asked_for() -> bool {
    std::env::var_os("CUTEMPLATE_SPEED").is_some()
}

/// A loop of 16 fused products on 32 lanes.
fn text(body: &str) -> String {
    format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 out)\n{{\n.reg .pred %p;\n.reg .b32 %r<40>;\n.reg .b64 %d<9>;\n\
         ld.param.u64 %d1, [out];\nmov.u32 %r1, %tid.x;\ncvt.rn.f32.u32 %r2, %r1;\nmov.b32 %r3, 0f3F000000;\nmov.u32 %r4, 0;\n\
         {}LOOP:\n{body}add.u32 %r4, %r4, 1;\nsetp.lt.u32 %p, %r4, 100000;\n@%p bra LOOP;\n\
         mul.wide.u32 %d2, %r1, 4;\nadd.u64 %d1, %d1, %d2;\nst.global.f32 [%d1], %r10;\nret;\n}}\n",
        (10..26).map(|i| format!("mov.b32 %r{i}, 0f3F800000;\n")).collect::<String>()
    )
}

fn time(name: &str, body: &str, modes: Modes) -> f64 {
    let module = Module::parse(text(body)).expect("PTX");
    let mut best = f64::INFINITY;
    for _ in 0..3 {
        let mut out = [0_u8; 128];
        let launch = module.launch("k").expect("an entry").block(&[32]).output("out", &mut out).modes(modes).workers(1);
        let start = Instant::now();
        let report = launch.run().expect("it runs");
        assert!(report.is_clean());
        best = best.min(start.elapsed().as_secs_f64() * 1e9 / report.instructions as f64);
    }
    println!(
        "{name}, {modes:?}: {best:.2} ns a warp instruction, {:.2} x 10^9 lane instructions a second",
        32.0 / best
    );
    best
}

#[test]
fn speed_of_the_loop() {
    if !crate::bench::is_asked_for() {
        return;
    }
    let each = |f: &dyn Fn(u32) -> String| (10..26).map(f).collect::<String>();
    for modes in [Modes::PLAIN, Modes { bounds: true, init: true, races: false }] {
        time("fma.rn.f32", &each(&|i| format!("fma.rn.f32 %r{i}, %r2, %r3, %r{i};\n")), modes);
        time("add.u32", &each(&|i| format!("add.u32 %r{i}, %r{i}, %r1;\n")), modes);
        time("mad.lo.u32", &each(&|i| format!("mad.lo.u32 %r{i}, %r{i}, %r1, %r4;\n")), modes);
        time("prmt.b32, a lane function", &each(&|i| format!("prmt.b32 %r{i}, %r{i}, %r1, %r4;\n")), modes);
        let mma = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r10,%r11,%r12,%r13}, {%r14,%r15,%r16,%r17}, {%r18,%r19}, {%r10,%r11,%r12,%r13};\n";
        let ns = time("mma m16n8k16 f16, a fourth of the instructions", mma, modes);
        println!("  {:.2} GFLOP/s", 4096.0 / (4.0 * ns));
    }
}
