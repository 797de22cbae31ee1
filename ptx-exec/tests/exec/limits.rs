//! Limits of a launch: placement of buffers and variables, reductions of bulk copies. Values beyond a limit are refused.

use ptx_exec::{Buffer, Data, Error, ErrorKind, Launch, Modes, Module, Placement};

use crate::variables;

fn module(variables: &str, body: &str) -> Module {
    let text = format!(
        ".version 8.6\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 out)\n{{\n.reg .pred %p<3>;\n.reg .b32 %r<9>;\n\
         .reg .b64 %d<9>;\n{variables}ld.param.u64 %d1, [out];\n{body}\nret;\n}}\n"
    );
    Module::parse(text).expect("PTX")
}

/// A store to each of the first `bytes` of a buffer.
fn filling(bytes: usize) -> Module {
    let stores: String = (0..bytes).map(|i| format!("st.global.u8 [%d1+{i}], %r1;\n")).collect();
    module("", &format!("mov.u32 %r1, 7;\n{stores}"))
}

fn refused(launch: Launch<'_>, what: &str) -> Error {
    let error = launch.run().map(drop).expect_err(what);
    assert_eq!(error.kind, ErrorKind::Launch, "{what}: {error}");
    assert!(!error.found.is_empty() && !error.required.is_empty(), "{what}: {error}");
    error
}

#[test]
fn buffers_lie_at_every_alignment_that_there_is() {
    let module = filling(5);
    for placement in [Placement::Exact, Placement::Driver] {
        for modes in [Modes::PLAIN, Modes::ALL] {
            for align in (0..=20).map(|n| 1_u64 << n) {
                for offset in [0, 1, align / 2, align - 1].into_iter().filter(|o| *o < align) {
                    let mut out = [0_u8; 5];
                    let mut buffer = Buffer::new("out", Data::Write(&mut out));
                    (buffer.align, buffer.offset) = (align, offset);
                    let launch = module.launch("k").expect("an entry").arg_buffer(buffer).placement(placement);
                    let report = launch.modes(modes).run().expect("it runs");
                    assert!(report.is_clean(), "align {align}, offset {offset}: {report}");
                    assert_eq!(out, [7; 5]);
                }
            }
        }
    }
}

#[test]
fn placements_that_no_memory_has_are_refused() {
    let module = filling(1);
    let aligns = [0, 3, 24, (1 << 20) + 1, 1 << 21, 1 << 40, 1 << 62, 1 << 63, u64::MAX];
    let placed = [Placement::Exact, Placement::Driver];
    for (align, placement) in aligns.into_iter().flat_map(|a| placed.map(|p| (a, p))) {
        let mut out = [0_u8; 1];
        let mut buffer = Buffer::new("out", Data::Write(&mut out));
        buffer.align = align;
        let launch = module.launch("k").expect("an entry").arg_buffer(buffer).placement(placement);
        let error = refused(launch, &format!("align {align}"));
        assert!(error.found.contains(&align.to_string()), "{error}");
    }
    for (offset, placement) in
        [16, 17, 1 << 40, u64::MAX - 15, u64::MAX].into_iter().flat_map(|o| placed.map(|p| (o, p)))
    {
        let mut out = [0_u8; 1];
        let mut buffer = Buffer::new("out", Data::Write(&mut out));
        buffer.offset = offset;
        refused(
            module.launch("k").expect("an entry").arg_buffer(buffer).placement(placement),
            &format!("offset {offset}"),
        );
    }
    for bytes in [u64::MAX, u64::MAX - 8, 1 << 63, 1 << 40] {
        let mut buffer = Buffer::new("out", Data::Scratch(bytes));
        buffer.offset = 9;
        refused(module.launch("k").expect("an entry").arg_buffer(buffer), &format!("{bytes} B"));
    }
}

#[test]
fn tensors_lie_in_their_buffer() {
    let module = filling(100);
    let run = |tensors: &[(u64, u64, i64)]| {
        let mut out = [0_u8; 100];
        let mut buffer = Buffer::new("out", Data::Write(&mut out));
        let tensor = |(offset, extent, stride): &(u64, u64, i64)| ptx_exec::Tensor {
            name: "t".to_owned(),
            offset: *offset,
            item: 1,
            shape: vec![*extent],
            stride: vec![*stride],
        };
        buffer.tensors = tensors.iter().map(tensor).collect();
        module.launch("k").expect("an entry").arg_buffer(buffer).modes(Modes::ALL).run()
    };
    for tensor in [(0, 101, 1), (0, 2, 100), (5, 3, -3), (u64::MAX, 1, 1), (0, u64::MAX, i64::MAX)] {
        let error = run(&[(0, 100, 1), tensor]).expect_err("it leaves the buffer");
        assert_eq!((error.kind, error.found.contains("of 100")), (ErrorKind::Launch, true), "{error}");
    }
    assert!(run(&[(0, 100, 1)]).expect("it runs").is_clean());
    assert!(run(&[(99, 100, -1)]).expect("it runs").is_clean());
    // Byte 70 is outside all elements.
    assert!(!run(&[(0, 70, 1), (71, 29, 1)]).expect("it runs").is_clean());
}

#[test]
fn parameters_that_do_not_fit_are_refused() {
    let module = filling(1);
    let launch = module.launch("k").expect("an entry").params(&[0; 3]).arg_bytes(&[0; 8]);
    refused(launch, "three bytes of parameters");
}

#[test]
fn variables_of_shared_memory_fit_a_block() {
    let many =
        |n: usize, align: u64| -> String { (0..n).map(|i| format!(".shared .align {align} .b8 x{i}[0];\n")).collect() };
    for (variables, fits) in [
        (many(4, 1 << 20), true),
        (many(4000, 1 << 20), false),
        (many(4000, 16), true),
        (".shared .b8 x[232448];\n".to_owned(), true),
        (".shared .b8 x[232449];\n".to_owned(), false),
        (".shared .b8 x[274877906944];\n.shared .b8 y[274877906944];\n".to_owned(), false),
    ] {
        let module = module(&variables, "");
        for placement in [Placement::Exact, Placement::Driver] {
            let launch = module.launch("k").expect("an entry").arg_bytes(&[0; 8]).placement(placement);
            // The driver's placement leaves less free.
            if fits {
                launch.run().unwrap_or_else(|e| panic!("{e}"));
            } else {
                refused(launch, "too much shared memory");
            }
        }
    }
}

#[test]
fn variables_of_a_module_fit_a_machine() {
    for (count, is_run) in [(1, true), (5, false), (1000, false)] {
        let variables: String = (0..count).map(|i| format!(".global .b8 x{i}[1073741824];\n")).collect();
        let text =
            format!(".version 8.6\n.target sm_90a\n.address_size 64\n{variables}.visible .entry k()\n{{\nret;\n}}\n");
        let module = Module::parse(text).expect("PTX");
        let refusal = module.entries().find_map(Result::err).map(|(_, e)| e.clone());
        assert_eq!(refusal.is_none(), is_run, "{count}: {refusal:?}");
        assert!(refusal.is_none_or(|e| e.kind == ErrorKind::Unsupported && e.position.is_some_and(|at| at.line > 4)));
    }
}

#[test]
fn entries_say_any_number_of_threads() {
    for directive in
        [".maxntid 4294967295, 4294967295, 4294967295", ".maxntid 65536, 65536, 1", ".minnctapersm 4294967295"]
    {
        let text = format!(
            ".version 8.6\n.target sm_90a\n.address_size 64\n.visible .entry k()\n{directive}\n{{\nsetmaxnreg.dec.sync.aligned.u32 24;\nret;\n}}\n"
        );
        let module = Module::parse(text).expect("PTX");
        module.launch("k").expect("an entry").block(&[128]).run().unwrap_or_else(|e| panic!("{directive}: {e}"));
    }
}

const TYPES: [&str; 20] = [
    "b8", "b16", "b32", "b64", "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "f16", "bf16", "f32", "f64",
    "f16x2", "bf16x2", "tf32", "e4m3",
];

/// The reductions of ptxas 13.0: an operation, its types to global memory, and its types to a peer's shared memory.
const REDUCTIONS: [(&str, &[&str], &[&str]); 9] = [
    ("add", &["u32", "u64", "s32", "f32", "f64"], &["u32", "u64", "s32"]),
    ("add.noftz", &["f16", "bf16"], &[]),
    ("min", &["u32", "u64", "s32", "s64", "f16", "bf16"], &["u32", "s32"]),
    ("max", &["u32", "u64", "s32", "s64", "f16", "bf16"], &["u32", "s32"]),
    ("inc", &["u32"], &["u32"]),
    ("dec", &["u32"], &["u32"]),
    ("and", &["b32", "b64"], &["b32"]),
    ("or", &["b32", "b64"], &["b32"]),
    ("xor", &["b32", "b64"], &["b32"]),
];

#[test]
fn bulk_copies_reduce_as_ptxas_has_it() {
    for (op, global, peer) in REDUCTIONS {
        for ty in TYPES {
            let to_global = format!("cp.reduce.async.bulk.global.shared::cta.bulk_group.{op}.{ty} [%d1], [%r1], 16;");
            let to_peer = format!(
                "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.{op}.{ty} [%r1], [%r2], 16, [%r3];"
            );
            for (instruction, types) in [(to_global, global), (to_peer, peer)] {
                let module = module(".shared .align 16 .b8 room[64];\n", &format!("mov.u32 %r1, room;\n{instruction}"));
                let is_run = module.entries().next().is_some_and(|e| e.is_ok());
                assert_eq!(is_run, types.contains(&ty), "{instruction}");
            }
        }
    }
}

/// Endless loops that issue asynchronous work, with the expected message.
const ENDLESS: [(&str, &str, &str); 8] = [
    ("cp.async, never committed", "cp.async.ca.shared.global [%r1], [%d1], 4;", "copy-room"),
    ("cp.async, never waited for", "cp.async.cg.shared.global [%r1], [%d1], 16;\ncp.async.commit_group;", "copy-room"),
    ("cp.async from nowhere", "cp.async.ca.shared.global [%r3], [%d1], 4;", "end"),
    (
        "cp.async, tracked",
        "cp.async.ca.shared.global [%r1], [%d1], 4;\ncp.async.mbarrier.arrive.noinc.shared.b64 [%r2];",
        "end",
    ),
    ("bulk stores", "cp.async.bulk.global.shared::cta.bulk_group [%d1], [%r1], 16;", "end"),
    (
        "bulk stores, committed",
        "cp.async.bulk.global.shared::cta.bulk_group [%d1], [%r1], 16;\ncp.async.bulk.commit_group;",
        "end",
    ),
    ("bulk loads", "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%d1], 16, [%r2];", "end"),
    ("st.async", "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r1], %r1, [%r2];", "end"),
];

/// Peak memory of the process, in bytes.
fn peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches("kB").trim().parse::<u64>().ok().map(|kb| kb << 10)
}

/// The loops themselves, in a process of their own: see [`endless_work_takes_no_memory`].
#[test]
#[ignore = "run by `endless_work_takes_no_memory`, in a process of its own"]
fn endless_work() {
    // Other tests in this process would count too.
    let alone = variables::switch("PTX_EXEC_ALONE");
    let memory = ".shared .align 16 .b8 room[64];\n.shared .align 8 .b64 barrier;\n";
    for (name, work, rule) in ENDLESS {
        let start = "mov.u32 %r1, room;\nmov.u32 %r2, barrier;\nmov.u32 %r3, 0;\nmov.u32 %r4, %laneid;\nsetp.eq.u32 %p1, %r4, 0;\n\
                     @%p1 mbarrier.init.shared.b64 [%r2], 1000000;\nbar.warp.sync -1;\n";
        let module = module(memory, &format!("{start}LOOP:\n{work}\nbra LOOP;"));
        for (modes, budget) in [(Modes::PLAIN, 6000), (Modes::ALL, 900)] {
            for seed in 0..3 {
                let before = peak().filter(|_| alone);
                let mut out = [0_u8; 64];
                let launch = module.launch("k").expect("an entry").block(&[32]).output("out", &mut out);
                let report = launch.modes(modes).seed(seed).step_budget(budget).run().expect("it runs");
                let rules: Vec<&str> = report.findings.iter().map(|f| f.rule.as_str()).collect();
                assert!(rules.contains(&rule), "{name}, seed {seed}: {report}");
                if let (Some(before), Some(after)) = (before, peak()) {
                    assert!(after - before < 8 << 20, "{name}, seed {seed}: {} MiB", (after - before) >> 20);
                }
            }
        }
    }
}

#[test]
fn endless_work_takes_no_memory() {
    let this = std::env::current_exe().expect("this test");
    let mut child = std::process::Command::new(this);
    child.args(["--exact", "limits::endless_work", "--ignored", "--test-threads=1"]).env("PTX_EXEC_ALONE", "1");
    let out = child.output().expect("this test runs");
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(out.status.success() && text.contains("1 passed"), "{text}\n{}", String::from_utf8_lossy(&out.stderr));
}

#[test]
fn the_step_budget_is_kept() {
    // One warp; four warps that meet at a barrier; blocks on all cores; blocks that see each other's writes.
    let lonely = module("", "LOOP:\nadd.u32 %r1, %r1, 1;\nbra LOOP;");
    let meeting = module("", "LOOP:\nbar.sync 0;\nadd.u32 %r1, %r1, 1;\nbra LOOP;");
    let talking = module("", "LOOP:\natom.global.add.u32 %r1, [%d1], 1;\nbra LOOP;");
    let sleeping = module("", "LOOP:\nnanosleep.u32 20;\nbra LOOP;");
    for (module, blocks, threads) in [
        (&lonely, 1, 32),
        (&lonely, 300, 64),
        (&meeting, 1, 128),
        (&meeting, 50, 128),
        (&talking, 100, 32),
        (&sleeping, 3, 96),
    ] {
        for budget in [0, 1, 5, 999, 100_000, 1_500_000] {
            for workers in [1, 5] {
                let mut out = [0_u8; 4];
                let launch = module.launch("k").expect("an entry").grid(&[blocks]).block(&[threads]);
                let launch = launch.workers(workers).step_budget(budget).output("out", &mut out);
                let report = launch.run().expect("it runs");
                assert!(report.findings.iter().all(|f| f.rule.as_str() == "end"), "{report}");
                assert!(!report.is_clean(), "{budget}: {report}");
                // The report leaves out blocks after the one that exhausted the budget. With several workers, some of them have run.
                let is_kept = if workers == 1 { report.instructions == budget } else { report.instructions <= budget };
                assert!(
                    is_kept,
                    "{budget}: {} of {blocks} blocks of {threads}, {workers} workers",
                    report.instructions
                );
            }
        }
    }
}

#[test]
fn a_launch_that_takes_its_whole_budget_ends() {
    let module = module("", "mov.u32 %r1, 7;\nst.global.u32 [%d1], %r1;");
    // Two warps in each of three blocks execute a parameter load, two instructions and a return.
    let all = 4 * 2 * 3;
    for workers in [1, 3] {
        for (budget, ends) in [(all, true), (all - 1, false)] {
            let mut out = [0_u8; 4];
            let launch = module.launch("k").expect("an entry").grid(&[3]).block(&[64]).workers(workers);
            let report = launch.step_budget(budget).output("out", &mut out).run().expect("it runs");
            assert_eq!((report.is_clean(), report.instructions), (ends, budget), "{report}");
        }
    }
}
