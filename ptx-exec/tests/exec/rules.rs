//! Each planted defect breaks one rule, and the finding names the rule and the remedy.

use ptx_exec::Rule;
use ptx_exec::{Modes, Module};

use crate::clusters::{MULTICAST, PEERS, peers};
use crate::defects::{COPY, EXCHANGE, handover, launch, run, text};
use crate::hopper::{Case, case};
use crate::tma::{LOAD, STORE, store};
use crate::tracked::COPIES;
use crate::wgmma::{filled, ones};

/// The rules that a launch breaks, in all modes.
fn broken(body: &str, blocks: u32, threads: u32) -> Vec<Rule> {
    launch(body, blocks, threads, Modes::ALL).0.findings.iter().map(|f| f.rule).collect()
}

#[test]
fn defects_of_a_block_break_the_rule_that_fits() {
    let copy = |commit: &str, wait: &str| COPY.replace("COMMIT", commit).replace("WAIT", wait);
    let (commit, wait) = ("cp.async.commit_group;", "cp.async.wait_group 0;");
    let lanes = EXCHANGE.replace("128", "4");
    let halves = "setp.lt.u32 %p1, %r1, 16;\n@%p1 bar.sync 0;";
    for (body, blocks, threads, rule) in [
        (EXCHANGE.replace("{}", ""), 1, 64, Rule::BlockOrder),
        (lanes.replace("{}", ""), 1, 32, Rule::WarpOrder),
        ("st.shared.u32 [%r4], %r1;".to_owned(), 1, 32, Rule::OneStore),
        ("shr.u32 %r6, %r1, 5;\nst.shared.u32 [%r4], %r6;".to_owned(), 1, 64, Rule::OneWriter),
        ("st.global.u32 [%d4], %r2;".to_owned(), 2, 32, Rule::OneWriter),
        (copy("", wait), 1, 64, Rule::CopyCommit),
        (copy(commit, ""), 1, 64, Rule::CopyWait),
        (copy(commit, "cp.async.wait_group 1;"), 1, 64, Rule::CopyWait),
        (copy(commit, wait).replace("bar.sync 0;", ""), 1, 64, Rule::BlockOrder),
        (halves.to_owned(), 1, 32, Rule::WholeWarp),
        ("bar.sync 16;".to_owned(), 1, 64, Rule::BarrierNumber),
        ("LOOP:\nbra LOOP;".to_owned(), 1, 32, Rule::End),
        ("st.global.u32 [%d4], %r9;".to_owned(), 1, 32, Rule::Initialised),
        ("st.global.u32 [%d4+1024], %r1;".to_owned(), 1, 32, Rule::InBounds),
    ] {
        assert_eq!(broken(&body, blocks, threads), [rule], "{body}");
    }
    let flag = handover("st.relaxed.gpu.global.u32 [%d1+4], 1;", "ld.acquire.gpu.global.u32 %r6, [%d1+4];");
    let (report, _) = launch(&flag, 2, 1, Modes { races: true, ..Modes::PLAIN });
    assert_eq!(report.findings.iter().map(|f| f.rule).collect::<Vec<Rule>>(), [Rule::GridOrder], "{report}");
}

/// The rules that a case breaks at each timing of asynchronous work.
#[track_caller]
fn breaks(case: &Case, rule: Rule) {
    for seed in 0..6 {
        let (report, _) = case.run(Modes { races: true, ..Modes::PLAIN }, seed);
        let rules: Vec<Rule> = report.findings.iter().map(|f| f.rule).collect();
        assert_eq!(rules, [rule], "seed {seed}: {report}\n{}", case.body);
        assert!(report.to_string().contains(rule.help()), "{report}");
    }
}

#[test]
fn defects_of_asynchronous_work_break_the_rule_that_fits() {
    let (load, stores, copies) = (case(LOAD), store(STORE), case(COPIES));
    breaks(&load.with("bar.sync 0;", "st.shared.u32 [%r5], %r1;\nbar.sync 0;"), Rule::ProxyFence);
    breaks(&stores.with("fence.proxy.async.shared::cta;", ""), Rule::ProxyFence);
    breaks(&stores.with("cp.async.bulk.wait_group 0;", ""), Rule::BulkEnd);
    let seen = stores.with("OUT:", "OUT:\nbar.sync 0;\nld.global.u32 %r9, [%d4+768];");
    breaks(&seen.with("wait_group 0", "wait_group.read 0"), Rule::BulkWait);
    breaks(&load.with("bar.sync 0;", ""), Rule::MbarrierInit);
    breaks(&copies.with("cp.async.ca.shared.global [%r5], [%d5], 4;", "st.shared.u32 [%r5], %r1;"), Rule::BlockOrder);
    let wait = "mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r6], 0;\n@!%p2 bra WAIT;";
    breaks(&copies.with(wait, ""), Rule::CopyArrival);
    breaks(&load.with(wait, "bar.sync 0;"), Rule::CopyArrival);
}

#[test]
fn defects_of_products_break_the_rule_that_fits() {
    let case = filled(8, &ones());
    let (fence, wait) = ("fence.proxy.async.shared::cta;", "wgmma.wait_group.sync.aligned 0;");
    breaks(&case.with(fence, ""), Rule::ProxyFence);
    // A fence before the barrier and none at all: the writes and the barrier are where they were.
    breaks(&case.with(fence, "").with("bar.sync 0;", ""), Rule::WriteBeforeAsync);
    breaks(&case.with("wgmma.fence.sync.aligned;", ""), Rule::ProductFence);
    breaks(&case.with(wait, ""), Rule::ProductRegisters);
    breaks(&case.with(wait, "wgmma.wait_group.sync.aligned 1;"), Rule::ProductRegisters);
    breaks(&case.with(wait, &format!("st.shared.u32 [%r5], 0;\n{wait}")), Rule::ProductWait);
    let (report, _) =
        case.with(wait, &format!("st.shared.u32 [%r5], 0;\n{wait}")).run(Modes { races: true, ..Modes::PLAIN }, 0);
    assert!(report.to_string().contains("has a product in flight that reads it"), "{report}");
}

#[test]
fn defects_of_clusters_break_the_rule_that_fits() {
    let last = "barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;";
    let case = peers(PEERS);
    breaks(&case.with(last, "").with("ld.shared.u32 %r10, [%r5];", "mov.u32 %r10, 0;"), Rule::PeerEnd);
    breaks(
        &case.with("barrier.cluster.arrive.release.aligned;", "barrier.cluster.arrive.relaxed.aligned;"),
        Rule::ClusterOrder,
    );
    breaks(&peers(MULTICAST).with("mov.u16 %h1, 3", "mov.u16 %h1, 5"), Rule::MulticastMask);
}

/// Repeats one defect: in the text or in a loop, by several threads and several blocks.
#[test]
fn copies_of_one_cause_are_one_finding() {
    let races = Modes { races: true, ..Modes::PLAIN };
    for n in [1_u32, 2, 5, 12, 100] {
        let store: String = (0..n).map(|i| format!("st.shared.u32 [%r5+{}], %r1;\n", i % 3 * 256)).collect();
        let load: String = (0..n).map(|i| format!("ld.shared.u32 %r7, [%r6+{}];\n", i % 3 * 256)).collect();
        let texts = [
            format!("xor.b32 %r6, %r5, 128;\n{store}{load}"),
            format!(
                "xor.b32 %r6, %r5, 128;\nmov.u32 %r8, 0;\nAGAIN:\nst.shared.u32 [%r5], %r1;\nld.shared.u32 %r7, [%r6];\n\
                 add.u32 %r8, %r8, 1;\nsetp.lt.u32 %p1, %r8, {n};\n@%p1 bra AGAIN;"
            ),
        ];
        for (text, blocks) in texts.iter().flat_map(|text| [(text, 1), (text, n.min(50))]) {
            // With a line of the source, and without.
            for text in [text.clone(), format!(".loc 1 0 0\n{text}")] {
                let (report, _) = launch(&text, blocks, 64, races);
                let rules: Vec<Rule> = report.findings.iter().map(|f| f.rule).collect();
                assert_eq!(rules, [Rule::BlockOrder], "{report}\n{text}");
                let found = &report.findings[0];
                assert!((32..=64).contains(&(found.threads / u64::from(blocks))), "{report}");
                assert_eq!(found.blocks, u64::from(blocks), "{report}");
                assert!(found.count >= 32 * u64::from(blocks), "{report}");
                assert_eq!(found.further.len(), usize::try_from(found.places - 1).expect("few").min(16), "{report}");
                assert_eq!(report, launch(&text, blocks, 64, races).0);
            }
        }
    }
}

#[test]
fn causes_at_different_lines_are_different_findings() {
    let races = Modes { races: true, ..Modes::PLAIN };
    let one = |line: u32, at: u32| {
        format!(
            ".loc 1 {line} 0\nst.shared.u32 [%r5+{at}], %r1;\n.loc 1 {} 0\nld.shared.u32 %r7, [%r6+{at}];\nbar.sync 0;\n",
            line + 1
        )
    };
    let text = format!("xor.b32 %r6, %r5, 128;\n{}{}{}", one(10, 0), one(20, 256), one(30, 512));
    let (report, _) = launch(&text, 3, 64, races);
    let lines: Vec<Option<u32>> = report.findings.iter().map(|f| f.line().map(|l| l.line / 10)).collect();
    assert_eq!(lines, [Some(1), Some(2), Some(3)], "{report}");
    // Without lines: the barriers stand between them.
    let text: String = text.lines().filter(|l| !l.starts_with(".loc")).map(|l| format!("{l}\n")).collect();
    let (report, _) = launch(&format!(".loc 1 0 0\n{text}"), 3, 64, races);
    assert_eq!(report.findings.len(), 3, "{report}");
}

/// A function of the user calls functions of libraries, to a depth.
#[test]
fn inlined_lines_lead_to_the_user_s() {
    for deep in [1_u32, 5, 31, 32, 40, 200] {
        let files = ".file 2 \"/usr/local/cuda-13.0/targets/x86_64-linux/include/cuda_pipeline.h\"\n\
                     .file 3 \"/opt/cutlass/include/cute/algorithm/copy.hpp\"\n.file 4 \"mine.cuh\"\n.visible";
        let mut chain = ".loc 1 33 0\n.loc 4 8 0, function_name f, inlined_at 1 33 0\n".to_owned();
        let mut last = "4 8 0".to_owned();
        for i in 0..deep {
            let here = format!("{} {} 0", 2 + i % 2, 100 + i);
            chain.push_str(&format!(".loc {here}, function_name f, inlined_at {last}\n"));
            last = here;
        }
        let text = text(&format!("{chain}st.global.u32 [%d4+1024], %r1;")).replace(".visible", files);
        let (report, _) = run(&Module::parse(text).expect("PTX"), 1, 32, Modes::PLAIN);
        let site = report.findings[0].site.as_ref().expect("a place");
        assert_eq!(site.source.len() as u32, deep + 2);
        let text = site.to_string();
        assert_eq!(site.user_line().map(ToString::to_string).as_deref(), Some("mine.cuh:8"), "{text}");
        assert!(text.contains(", inlined at mine.cuh:8"), "{text}");
        assert!(text.ends_with("inlined at kernel.cu:33"), "{text}");
        assert_eq!(text.contains(&format!("({} levels between)", deep - 1)), deep > 2, "{text}");
    }
}

/// The origin of an uninitialised value that is used at the end.
#[test]
fn uninitialised_values_name_what_read_them() {
    let init = Modes { init: true, ..Modes::PLAIN };
    let load = ".loc 1 10 0\nld.shared.u32 %r6, [%r5+64];\n.loc 1 20 0\n";
    // On its way: registers of both widths, other lanes, shared and local memory, a copy.
    let ways = [
        "",
        "add.u32 %r6, %r6, 1;\nmul.lo.u32 %r6, %r6, %r6;\n",
        "cvt.u64.u32 %d6, %r6;\nadd.u64 %d6, %d6, 5;\ncvt.u32.u64 %r6, %d6;\n",
        "setp.lt.u32 %p1, %r6, 5;\nselp.b32 %r6, 1, 2, %p1;\n",
        "shfl.sync.bfly.b32 %r6, %r6, 1, 31, -1;\nshfl.sync.bfly.b32 %r6, %r6, 1, 31, -1;\n",
        "st.shared.u32 [%r5+256], %r6;\nld.shared.u32 %r6, [%r5+256];\n",
        "mov.u64 %d6, l;\nst.local.u32 [%d6], %r6;\nld.local.u32 %r6, [%d6];\n",
    ];
    let uses = [
        ("st.global.u32 [%d4], %r6;", "byte 0 of out[1024 B]"),
        ("setp.eq.u32 %p2, %r6, 0;\n@%p2 bra DONE;\nst.global.u32 [%d4], %r1;\nDONE:", ""),
        ("and.b32 %r6, %r6, 124;\ncvt.u64.u32 %d6, %r6;\nadd.u64 %d6, %d2, %d6;\nld.global.u32 %r7, [%d6];", ""),
        ("red.global.add.u32 [%d1], %r6;", ""),
    ];
    for (way, (of, output)) in ways.iter().flat_map(|way| uses.map(|of| (way, of))) {
        let text = format!("{load}{way}.loc 1 30 0\n{of}");
        let (report, _) = launch(&text, 2, 32, init);
        let first = &report.findings[0];
        let origin = first.origin.as_ref().unwrap_or_else(|| panic!("{first}\n{text}"));
        assert_eq!(first.rule, Rule::Initialised);
        assert_eq!(origin.site.user_line().map(|l| l.line), Some(10), "{first}");
        assert_eq!(origin.site.opcode, "ld.shared.u32");
        assert_eq!(origin.target.to_string(), "byte 64 of shared s[1024 B]", "{first}\n{text}");
        if !output.is_empty() {
            assert_eq!(first.target.as_ref().map(ToString::to_string).as_deref(), Some(output));
            assert!(first.write && first.line().is_some_and(|l| l.line == 30), "{first}");
        }
        // `red` also reads the uninitialised output.
        let others = report.findings[1..].iter().filter(|f| f.target.is_none() || !of.starts_with("red"));
        assert_eq!(others.count(), 0, "{report}");
    }
    // A copy brings it from global memory.
    let copy = ".loc 1 10 0\ncp.async.ca.shared.global [%r5], [%d4], 4;\ncp.async.wait_all;\n.loc 1 20 0\nld.shared.u32 %r6, [%r5];\n\
                st.global.u32 [%d4+256], %r6;";
    let (report, _) = launch(copy, 1, 32, init);
    let origin = report.findings[0].origin.as_ref().expect("an origin");
    assert_eq!((report.findings.len(), origin.site.opcode.as_str()), (1, "cp.async.ca.shared.global"));
    assert_eq!(origin.target.to_string(), "byte 0 of out[1024 B]");
    // A register has no origin.
    assert_eq!(launch("st.global.u32 [%d4], %r9;", 1, 32, init).0.findings[0].origin, None);
}

/// A fault in every block ends the launch early, and the findings do not depend on the number of host threads.
#[test]
fn launches_that_go_wrong_everywhere_end_early() {
    let module =
        Module::parse(text("st.global.u32 [%d4+1024], %r1;\nadd.u64 %d4, %d1, 4096;\nld.global.u32 %r6, [%d4];"))
            .expect("PTX");
    let of = |module: &Module, workers: usize| {
        let mut out = vec![0_u8; 1024];
        let launch = module.launch("k").expect("an entry").grid(&[1_000_000]).block(&[32]).output("out", &mut out);
        launch.input("in", &[0; 1024]).workers(workers).run().expect("it runs")
    };
    let one = of(&module, 1);
    assert_eq!((one.findings.len(), one.findings[0].blocks, one.findings[0].count), (1, 64, 64 * 64), "{one}");
    assert_eq!((one.finished_blocks, one.unfinished()), (64, 1_000_000 - 64));
    for workers in [2, 3, 8] {
        assert_eq!(of(&module, workers), one);
    }
    // A block that cannot continue ends the launch; earlier blocks run.
    let text =
        text("setp.eq.u32 %p1, %r2, 50;\n@%p1 trap;\nsetp.gt.u32 %p1, %r2, 20;\n@%p1 st.global.u32 [%d4+1024], %r1;");
    let module = Module::parse(text).expect("PTX");
    let one = of(&module, 1);
    assert_eq!((one.findings.len(), one.finished_blocks), (2, 50), "{one}");
    for workers in [2, 3, 8] {
        assert_eq!(of(&module, workers), one);
    }
    // A loop with a fault in each round.
    let (report, _) = launch("LOOP:\nst.global.u32 [%d4+1024], %r1;\nbra LOOP;", 1, 32, Modes::PLAIN);
    assert!(
        report.findings.iter().any(|f| f.rule == Rule::InBounds) && report.findings[0].count < 2_000_000,
        "{report}"
    );
}
