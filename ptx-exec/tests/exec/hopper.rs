//! Launches of one entry with `mbarrier`s, shared memory and a tensor map, at each timing of copies and products.

use ptx_exec::{Buffer, Data, Finding, FindingKind, Modes, Module, Report, TensorCores, TensorMap, Ty};

/// One launch of an entry `k(out, in, map)` with 48 KiB of shared memory at `s` and barriers at `bar`.
#[derive(Clone)]
pub(crate) struct Case {
    pub(crate) body: String,
    pub(crate) threads: u32,
    pub(crate) blocks: u32,
    pub(crate) cluster: u32,
    /// Whether the map is of the output.
    pub(crate) stores: bool,
    pub(crate) spec: TensorMap,
    pub(crate) out: usize,
    pub(crate) input: Vec<u8>,
    pub(crate) cores: TensorCores,
    pub(crate) profile: bool,
    /// Whether it begins while the kernel before it ends.
    pub(crate) early: bool,
}

pub(crate) fn case(body: &str) -> Case {
    Case {
        body: body.to_owned(),
        threads: 64,
        blocks: 1,
        cluster: 1,
        stores: false,
        spec: TensorMap::new(Ty::S32, &[32, 8], &[128], &[32, 4]),
        out: 4096,
        input: (0..1024_u32).flat_map(u32::to_le_bytes).collect(),
        cores: TensorCores::Fast,
        profile: false,
        early: false,
    }
}

impl Case {
    pub(crate) fn text(&self) -> String {
        format!(
            ".version 8.0\n.target sm_90a\n.address_size 64\n.file 1 \"kernel.cu\"\n\
             .visible .entry k(.param .u64 out, .param .u64 in, .param .align 64 .b8 map[128])\n{{\n\
             .reg .pred %p<9>;\n.reg .b16 %h<4>;\n.reg .b32 %r<40>;\n.reg .b64 %d<20>;\n.reg .f32 %f<300>;\n\
             .shared .align 1024 .b8 s[49152];\n.shared .align 8 .b8 bar[64];\n\
             ld.param.u64 %d1, [out];\nld.param.u64 %d2, [in];\nmov.u32 %r1, %tid.x;\nmov.u32 %r2, %ctaid.x;\n\
             mul.wide.u32 %d3, %r1, 4;\nadd.u64 %d4, %d1, %d3;\nadd.u64 %d5, %d2, %d3;\nshl.b32 %r3, %r1, 2;\nmov.u32 %r4, s;\n\
             add.u32 %r5, %r4, %r3;\nmov.u32 %r6, bar;\nmov.b64 %d6, map;\ncvta.param.u64 %d6, %d6;\nsetp.eq.u32 %p1, %r1, 0;\n\
             .loc 1 7 0\n{}\nret;\n}}\n",
            self.body
        )
    }

    pub(crate) fn run(&self, modes: Modes, seed: u64) -> (Report, Vec<u32>) {
        let module = Module::parse(self.text()).expect("PTX");
        let mut out = vec![0xff_u8; self.out];
        let mut buffer = Buffer::new("out", Data::Write(&mut out));
        buffer.written = self.stores;
        let launch = module.launch("k").unwrap_or_else(|e| panic!("{e}")).grid(&[self.blocks]).block(&[self.threads]);
        let launch = launch.cluster(&[self.cluster]).arg_buffer(buffer).input("in", &self.input);
        let launch = launch.arg_tensor_map(usize::from(!self.stores), 0, self.spec).modes(modes).seed(seed);
        let launch = launch.tensor_cores(self.cores).profile(self.profile).programmatic(self.early);
        let report = launch.step_budget(3_000_000).run().unwrap_or_else(|e| panic!("{e}"));
        (report, out.chunks_exact(4).map(|c| u32::from_le_bytes(c.try_into().expect("4 bytes"))).collect())
    }

    /// No finding in all modes, at each timing of asynchronous work.
    #[track_caller]
    pub(crate) fn silent(&self) -> Vec<u32> {
        let mut result = None;
        for seed in 0..6 {
            for modes in [Modes::PLAIN, Modes::ALL] {
                let (report, out) = self.run(modes, seed);
                assert!(report.is_clean(), "seed {seed}: {}\n{}", report.findings[0], self.body);
                assert_eq!(*result.get_or_insert_with(|| out.clone()), out, "seed {seed}");
            }
        }
        result.expect("a result")
    }

    /// A finding at each timing of asynchronous work.
    #[track_caller]
    pub(crate) fn finds(&self, kind: FindingKind, words: &str) -> Finding {
        let mut first = None;
        for seed in 0..3 {
            let (report, _) = self.run(Modes { bounds: false, init: false, races: true }, seed);
            let has = |f: &&Finding| f.kind == kind && f.to_string().contains(words);
            let found = report.findings.iter().find(has);
            let found =
                found.unwrap_or_else(|| panic!("seed {seed}: no {kind:?} of `{words}`:\n{report}\n{}", self.body));
            first.get_or_insert_with(|| found.clone());
        }
        let first = first.expect("three seeds");
        println!("{first}\n");
        first
    }

    /// The same with a part of the text replaced.
    #[track_caller]
    pub(crate) fn with(&self, from: &str, to: &str) -> Case {
        assert!(self.body.contains(from), "{from} in {}", self.body);
        Case { body: self.body.replace(from, to), ..self.clone() }
    }
}

/// A warp need not wait for the previous kernel itself, if another warp has waited and then synchronised with it.
#[test]
fn who_has_waited_for_the_kernel_before_tells_others() {
    let of = |waits: &str, tells: &str| {
        let body = format!("setp.lt.u32 %p2, %r1, 32;\n{waits}\n{tells}\nst.global.u32 [%d4], %r1;");
        Case { early: true, ..case(&body) }
    };
    let first = "@%p2 griddepcontrol.wait;";
    assert_eq!(of("griddepcontrol.wait;", "").silent()[..64], (0..64).collect::<Vec<u32>>());
    assert_eq!(of(first, "bar.sync 0;").silent()[..64], (0..64).collect::<Vec<u32>>());
    for (waits, tells) in [("", "bar.sync 0;"), (first, ""), (first, "bar.warp.sync 0xffffffff;")] {
        let (report, _) = of(waits, tells).run(Modes { races: true, ..Modes::PLAIN }, 0);
        assert!(report.findings.iter().any(|f| f.kind == FindingKind::Asynchrony), "{waits} {tells}");
    }
}
