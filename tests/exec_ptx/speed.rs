//! What mode `races` costs: its time over that of a plain run. Products of warpgroups and copies by TMA: at most 8; the rest: at most 4.
//!
//! `cargo test --release --test exec_ptx -- --ignored --nocapture speed::`; of the texts whose names contain `CUTEMPLATE_SPEED`.

use std::num::NonZero;

use cutemplate::arch::Arch;
use cutemplate::exec::ptx::{Modes, Module, Options, Placement};
use cutemplate::exec::{Job, Report};
use cutemplate::recipe::{Gemm, Recipe};
use cutemplate::verify::Fill;

use crate::bench::seconds;
use crate::hopper::Case;
use crate::kernels::gemm::sized;
use crate::kernels::{Kernel, Problem, Tensors};
use crate::needed::{CLUSTERS, KEPT, PART, TEAMS};
use crate::own::{
    BOUNDED, CORES, NAIVE, SPLIT, STAGED, TILED, WARPGROUPS, apply, built, gemm, of_warpgroups, program, sgemm,
};
use crate::wgmma::{filled, ones};
use crate::{catalogue, staying, together};

const RACES: Modes = Modes { races: true, ..Modes::PLAIN };

/// Times of a launch: the shortest of a few rounds of a fifth of a second, so that what else the machine does is left out.
fn time(mut launch: impl FnMut() -> Report) -> f64 {
    let mut best = f64::MAX;
    for _ in 0..3 {
        let (start, mut runs) = (seconds(), 0);
        while runs == 0 || seconds() - start < 0.2 {
            let report = launch();
            assert!(report.is_clean(), "{report}");
            runs += 1;
        }
        best = best.min((seconds() - start) / f64::from(runs));
    }
    best
}

/// The texts that cost more than they may.
struct Ratios {
    most: f64,
    asked: String,
    over: Vec<String>,
}

impl Ratios {
    fn new(most: f64) -> Ratios {
        Ratios { most, asked: std::env::var("CUTEMPLATE_SPEED").unwrap_or_default(), over: Vec::new() }
    }

    fn of(&mut self, name: &str, mut launch: impl FnMut(Modes) -> Report) {
        if self.asks_for(name) {
            let [plain, races] = [Modes::PLAIN, RACES].map(|modes| time(|| launch(modes)));
            let line = format!("{name}: plain {:.3} ms, races {:.2} times", plain * 1e3, races / plain);
            println!("{line}");
            if races / plain > self.most {
                self.over.push(line);
            }
        }
    }

    fn asks_for(&self, name: &str) -> bool {
        name.contains(&self.asked)
    }

    fn of_extents(&mut self, kernel: &Kernel, text: &str, extents: &[i64; 3]) {
        let problem = sized(&kernel.plan, extents, None, Fill::Integers, 1);
        self.of_problem(&format!("{} {extents:?}", kernel.plan.name()), kernel, text, &problem);
    }

    fn of_problem(&mut self, name: &str, kernel: &Kernel, text: &str, problem: &Problem) {
        let options = Options { placement: Placement::Driver, workers: NonZero::new(1), ..BOUNDED };
        let programs = [Modes::PLAIN, RACES].map(|modes| program(kernel, text).with(Options { modes, ..options }));
        let mut tensors = Tensors::new(&kernel.plan, problem);
        let views = tensors.views(problem);
        let binding = kernel.plan.bind_with(&views, &problem.scalars).expect("a launch");
        self.of(name, |modes| {
            let program = &programs[usize::from(modes.races)];
            tensors.run(program, &Job::from(&binding), problem, &views).expect("it runs")
        });
    }

    fn of_case(&mut self, name: &str, case: &Case) {
        let module = Module::parse(case.text()).expect("PTX");
        let mut out = vec![0_u8; case.out];
        self.of(name, |modes| {
            let launch = module.launch("k").expect("an entry").grid(&[case.blocks]).block(&[case.threads]);
            let launch = launch.output("out", &mut out).input("in", &case.input).arg_tensor_map(1, 0, case.spec);
            launch.modes(modes).workers(1).run().expect("it runs")
        });
    }

    fn judge(self) {
        assert!(self.over.is_empty(), "more than {} times:\n{}", self.most, self.over.join("\n"));
    }
}

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
fn races_of_warpgroups_cost_at_most_eight_times() {
    let mut all = Ratios::new(8.0);
    for n in [8, 64, 128] {
        all.of_case(&format!("a loop of products m64n{n}k16"), &products(n));
    }
    let own = [WARPGROUPS, CLUSTERS, TEAMS, PART, KEPT, staying::TURNS].map(|settings| gemm(settings, Arch::Sm90a));
    for kernel in own.into_iter().chain(of_warpgroups()) {
        let text = together::ptx(&kernel);
        for extents in [[256, 256, 256], [128, 128, 1024], [512, 256, 64]] {
            all.of_extents(&kernel, text, &extents);
        }
    }
    for kernel in catalogue::for_arch(Arch::Sm90a).iter().filter(|kernel| kernel.plan.family() == Gemm::FAMILY) {
        if all.asks_for(kernel.plan.name()) {
            let text = built(kernel);
            for extents in [[256, 256, 256], [512, 256, 64]] {
                all.of_extents(kernel, &text, &extents);
            }
        }
    }
    all.judge();
}

/// Threads of many warps that add to counters, again and again: to one, to a few, to 1024 of them in the device's memory, or in
/// the block's, which it adds to the device's at the end.
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

#[test]
#[ignore = "measures times, in a release build"]
fn races_of_threads_cost_at_most_four_times() {
    let mut all = Ratios::new(4.0);
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
    for kernel in [NAIVE, TILED, STAGED, SPLIT].map(sgemm).iter().chain([&apply()]) {
        let text = together::ptx(kernel);
        all.of_problem(kernel.plan.name(), kernel, text, &catalogue::large(kernel));
    }
    for kernel in [gemm(CORES, Arch::Sm80)] {
        all.of_problem(kernel.plan.name(), &kernel, together::ptx(&kernel), &catalogue::large(&kernel));
    }
    all.judge();
}
