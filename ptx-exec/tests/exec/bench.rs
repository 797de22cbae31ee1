//! Speed of the executor: `cargo test --release --test exec_ptx -- --ignored --nocapture speed`.

use std::sync::OnceLock;
use std::time::Instant;

use ptx_exec::{Modes, Module, TensorCores};

/// CPU time of the thread in seconds, if the system has it (in ticks of a few milliseconds); otherwise wall time.
pub(crate) fn seconds() -> f64 {
    static START: OnceLock<Instant> = OnceLock::new();
    let of = |text: String| text.split(' ').next()?.parse::<f64>().ok();
    let thread = std::fs::read_to_string("/proc/thread-self/schedstat").ok().and_then(of);
    thread.map_or_else(|| START.get_or_init(Instant::now).elapsed().as_secs_f64(), |nanoseconds| nanoseconds * 1e-9)
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

fn time(name: &str, body: &str, modes: Modes, cores: TensorCores) -> Option<f64> {
    // Products take a hundred times as long.
    let loops = if body.starts_with("mma") { "2000" } else { "100000" };
    let module = Module::parse(text(body).replace("100000", loops)).expect("PTX");
    let (start, mut instructions) = (seconds(), 0);
    while seconds() - start < 0.4 {
        let mut out = [0_u8; 128];
        let launch = module.launch("k").expect("an entry").block(&[32]).output("out", &mut out).modes(modes).workers(1);
        // Ampere has no 8-bit floats.
        let report = launch.tensor_cores(cores).run().ok()?;
        assert!(report.is_clean());
        instructions += report.instructions;
    }
    let ns = (seconds() - start) * 1e9 / instructions as f64;
    println!("{name}, {modes:?}: {ns:.2} ns a warp instruction, {:.2} x 10^9 lane instructions a second", 32.0 / ns);
    Some(ns)
}

#[test]
#[ignore = "measures times, in a release build"]
fn speed_of_the_loop() {
    let each = |f: &dyn Fn(u32) -> String| (10..26).map(f).collect::<String>();
    for modes in [Modes::PLAIN, Modes { bounds: true, init: true, races: false }] {
        time("fma.rn.f32", &each(&|i| format!("fma.rn.f32 %r{i}, %r2, %r3, %r{i};\n")), modes, TensorCores::Fast);
        time("add.u32", &each(&|i| format!("add.u32 %r{i}, %r{i}, %r1;\n")), modes, TensorCores::Fast);
        time("mad.lo.u32", &each(&|i| format!("mad.lo.u32 %r{i}, %r{i}, %r1, %r4;\n")), modes, TensorCores::Fast);
        time(
            "prmt.b32, a lane function",
            &each(&|i| format!("prmt.b32 %r{i}, %r{i}, %r1, %r4;\n")),
            modes,
            TensorCores::Fast,
        );
    }
}

/// Products of tensor cores: opcode, registers of D, A, B and C, operations.
const PRODUCTS: [(&str, [usize; 4], f64); 9] = [
    ("m16n8k16.row.col.f32.f16.f16.f32", [4, 4, 2, 4], 4096.0),
    ("m16n8k16.row.col.f16.f16.f16.f16", [2, 4, 2, 2], 4096.0),
    ("m16n8k8.row.col.f32.f16.f16.f32", [4, 2, 1, 4], 2048.0),
    ("m16n8k16.row.col.f32.bf16.bf16.f32", [4, 4, 2, 4], 4096.0),
    ("m16n8k8.row.col.f32.tf32.tf32.f32", [4, 4, 2, 4], 2048.0),
    ("m16n8k4.row.col.f32.tf32.tf32.f32", [4, 2, 1, 4], 1024.0),
    ("m16n8k32.row.col.f32.e4m3.e4m3.f32", [4, 4, 2, 4], 8192.0),
    ("m16n8k32.row.col.f32.e5m2.e5m2.f32", [4, 4, 2, 4], 8192.0),
    ("m16n8k32.row.col.s32.s8.s8.s32", [4, 4, 2, 4], 8192.0),
];

#[test]
#[ignore = "measures times, in a release build"]
fn speed_of_products() {
    let list = |n: usize, first: usize| {
        let all: Vec<String> = (first..first + n).map(|i| format!("%r{i}")).collect();
        format!("{{{}}}", all.join(","))
    };
    for (op, [d, a, b, c], operations) in PRODUCTS {
        // Four in the loop, so that the loop's own cost is small.
        let one =
            format!("mma.sync.aligned.{op} {}, {}, {}, {};\n", list(d, 10), list(a, 14), list(b, 18), list(c, 22));
        for cores in [TensorCores::Fast, TensorCores::Hopper, TensorCores::Ampere] {
            if let Some(ns) = time(op, &one.repeat(4), Modes::PLAIN, cores) {
                println!("{op}, {cores:?}: {:.2} GFLOP/s", 4.0 * operations / (7.0 * ns));
            }
        }
    }
}
