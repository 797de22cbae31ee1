//! Each planted defect breaks one rule, and the findings name that rule and what mends it.

use cutemplate::exec::Rule;
use cutemplate::exec::ptx::Modes;

use crate::clusters::{MULTICAST, PEERS, peers};
use crate::defects::{COPY, EXCHANGE, handover, launch};
use crate::hopper::{Case, case};
use crate::tma::{LOAD, STORE, store};
use crate::tracked::COPIES;

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
        (
            handover("st.relaxed.gpu.global.u32 [%d1+4], 1;", "ld.acquire.gpu.global.u32 %r6, [%d1+4];"),
            2,
            1,
            Rule::GridOrder,
        ),
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
        let rules = broken(&body, blocks, threads);
        assert!(rules.contains(&rule), "{rule}: {rules:?}\n{body}");
    }
}

/// The rules that a case breaks, whenever asynchronous work happens.
#[track_caller]
fn breaks(case: &Case, rule: Rule) {
    for seed in 0..6 {
        let (report, _) = case.run(Modes { races: true, ..Modes::PLAIN }, seed);
        let rules: Vec<Rule> = report.findings.iter().map(|f| f.rule).collect();
        assert!(rules.contains(&rule), "seed {seed}: {rule}: {report}\n{}", case.body);
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
    breaks(&copies.with("WAIT:", "st.shared.u32 [%r5], %r1;\nWAIT:"), Rule::CopyArrival);
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
