//! The memory model. Accesses that fences, scopes, state spaces and proxies order give no finding; all others are found with every seed.

use ptx_exec::Modes;
use ptx_exec::{FindingKind, Report, Rule};

use crate::clusters::{MULTICAST, PEERS, peers};
use crate::hopper::{Case, case};
use crate::tma::{STORE, store};

const SEEDS: u64 = 3;
const RACES: Modes = Modes { bounds: false, init: false, races: true };

/// The place of the thread that reads the word of thread 0 of block 0.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Reader {
    Warp,
    Peer,
    Block,
}

/// Threads that a scope includes, beginning with those of a block.
const SCOPES: [&str; 4] = ["cta", "cluster", "gpu", "sys"];

impl Reader {
    /// The narrowest scope that includes writer and reader.
    fn scope(self) -> usize {
        match self {
            Reader::Warp => 0,
            Reader::Peer => 1,
            Reader::Block => 2,
        }
    }

    fn case(self, body: &str) -> Case {
        let (blocks, cluster) = match self {
            Reader::Warp => (1, 1),
            Reader::Peer => (2, 2),
            Reader::Block => (2, 1),
        };
        Case { blocks, cluster, ..case(body) }
    }
}

/// Thread 0 of block 0 writes a number and sets a flag; a thread elsewhere waits for the flag, and reads the number.
fn handover(reader: Reader, set: &str, look: &str) -> Case {
    let reads = if reader == Reader::Warp { "setp.eq.u32 %p5, %r1, 32;" } else { "setp.eq.and.u32 %p5, %r2, 1, %p1;" };
    reader.case(&format!(
        "setp.eq.and.u32 %p4, %r2, 0, %p1;\n{reads}\nadd.u64 %d10, %d1, 512;\n@%p4 bra SET;\n@%p5 bra LOOK;\nbra DONE;\n\
         SET:\nst.global.u32 [%d1], 42;\n{set}\nbra DONE;\n\
         LOOK:\n{look}\nsetp.ne.u32 %p6, %r20, 7;\n@%p6 bra LOOK;\nAFTER\nld.global.u32 %r21, [%d1];\nst.global.u32 [%d1+8], %r21;\nDONE:"
    ))
}

/// Ways to set the flag, and the widest scope of the release.
fn sets() -> Vec<(String, Option<usize>)> {
    let mut all = Vec::new();
    let writes = [
        "st.volatile.global.u32 [%d10], 7;",
        "st.relaxed.gpu.global.u32 [%d10], 7;",
        "atom.global.exch.b32 %r22, [%d10], 7;",
        "red.relaxed.sys.global.min.u32 [%d10], 7;",
    ];
    for write in writes {
        all.push((write.to_owned(), None));
        // A fence after the flag, or before the announced write, does not release.
        all.push((format!("{write}\nfence.acq_rel.gpu;"), None));
    }
    for (at, scope) in SCOPES.iter().enumerate() {
        let write = writes[at % writes.len()];
        all.push((format!("fence.acq_rel.{scope};\n{write}"), Some(at)));
        all.push((format!("fence.sc.{scope};\n{}", writes[(at + 1) % writes.len()]), Some(at)));
        all.push((format!("atom.exch.release.{scope}.global.b32 %r22, [%d10], 7;"), Some(at)));
    }
    all.push(("membar.cta;\nst.volatile.global.u32 [%d10], 7;".to_owned(), Some(0)));
    all.push(("membar.gl;\nst.volatile.global.u32 [%d10], 7;".to_owned(), Some(2)));
    all.push(("st.release.gpu.global.u32 [%d10], 7;".to_owned(), Some(2)));
    // A later strong write of the same thread continues the release sequence.
    all.push(("st.release.gpu.global.u32 [%d10], 5;\nst.relaxed.gpu.global.u32 [%d10], 7;".to_owned(), Some(2)));
    all
}

/// Ways to read the flag, the text after the loop, and the widest scope of the acquire.
fn looks() -> Vec<(String, String, Option<usize>)> {
    let mut all = Vec::new();
    let reads = [
        "ld.volatile.global.u32 %r20, [%d10];",
        "ld.relaxed.gpu.global.u32 %r20, [%d10];",
        "atom.global.or.b32 %r20, [%d10], 0;",
        "atom.relaxed.gpu.global.cas.b32 %r20, [%d10], 7, 7;",
    ];
    for (at, scope) in SCOPES.iter().enumerate() {
        all.push((reads[at].to_owned(), String::new(), None));
        all.push((reads[at].to_owned(), format!("fence.acq_rel.{scope};"), Some(at)));
        all.push((reads[(at + 1) % 4].to_owned(), format!("fence.sc.{scope};"), Some(at)));
        all.push((format!("atom.or.acquire.{scope}.global.b32 %r20, [%d10], 0;"), String::new(), Some(at)));
    }
    all.push(("ld.acquire.gpu.global.u32 %r20, [%d10];".to_owned(), String::new(), Some(2)));
    all.push(("ld.volatile.global.u32 %r20, [%d10];".to_owned(), "membar.gl;".to_owned(), Some(2)));
    all
}

#[track_caller]
fn is_found(case: &Case, rules: &[Rule]) {
    for seed in 0..SEEDS {
        let (report, _) = case.run(RACES, seed);
        let is_it = |report: &Report| report.findings.iter().any(|f| rules.is_empty() || rules.contains(&f.rule));
        assert!(is_it(&report), "seed {seed}: {rules:?}: {report}\n{}", case.body);
    }
}

#[track_caller]
fn is_silent(case: &Case) {
    for seed in 0..SEEDS {
        let (report, _) = case.run(RACES, seed);
        assert!(report.is_clean(), "seed {seed}: {report}\n{}", case.body);
    }
}

#[test]
fn a_flag_orders_what_its_fences_and_scopes_order() {
    let looks = looks();
    let mut counts = [0, 0];
    for reader in [Reader::Warp, Reader::Peer, Reader::Block] {
        for (s, (set, released)) in sets().into_iter().enumerate() {
            for (l, (look, after, acquired)) in looks.iter().enumerate() {
                // A third of the pairs, so that each way meets each reader.
                if (s + l + reader.scope()) % 3 != 0 {
                    continue;
                }
                let case = handover(reader, &set, look);
                let case = case.with("AFTER", after);
                // Atomics of block scope are not atomic for another block.
                let is_flag = |text: &str| text.contains(".release.") || text.contains(".acquire.");
                let narrow =
                    |text: &str, scope: &Option<usize>| is_flag(text) && scope.is_some_and(|s| s < reader.scope());
                let is_racy = narrow(&set, &released) || narrow(look, acquired);
                let reaches = |scope: Option<usize>| scope.is_some_and(|scope| scope >= reader.scope());
                if reaches(released) && reaches(*acquired) && !is_racy {
                    counts[0] += 1;
                    is_silent(&case);
                } else {
                    counts[1] += 1;
                    let rule = match (reaches(released), reaches(*acquired)) {
                        _ if is_racy => &[][..],
                        (true, false) if acquired.is_none() => &[Rule::AcquireFence],
                        (false, _) if released.is_none() => &[Rule::ReleaseFence],
                        _ => &[Rule::Scope],
                    };
                    is_found(&case, rule);
                }
            }
        }
    }
    assert!(counts.iter().all(|n| *n > 60), "{counts:?}");
}

/// A write of another thread without an acquire ends the release sequence.
#[test]
fn a_relaxed_store_of_another_thread_ends_a_release() {
    let body = "add.u64 %d10, %d1, 512;\n@!%p1 bra DONE;\nsetp.eq.u32 %p4, %r2, 1;\n@%p4 bra SECOND;\n\
        setp.eq.u32 %p4, %r2, 2;\n@%p4 bra THIRD;\nst.global.u32 [%d1], 42;\nst.release.gpu.global.u32 [%d10], 1;\nbra DONE;\n\
        SECOND:\nld.relaxed.gpu.global.u32 %r20, [%d10];\nsetp.ne.u32 %p5, %r20, 1;\n@%p5 bra SECOND;\n\
        st.relaxed.gpu.global.u32 [%d10], 2;\nst.relaxed.gpu.global.u32 [%d10+8], 1;\nbra DONE;\n\
        THIRD:\nld.relaxed.gpu.global.u32 %r20, [%d10+8];\nsetp.ne.u32 %p5, %r20, 1;\n@%p5 bra THIRD;\n\
        ld.acquire.gpu.global.u32 %r20, [%d10];\nld.global.u32 %r21, [%d1];\nst.global.u32 [%d1+8], %r21;\nDONE:";
    let three = Case { blocks: 3, ..case(body) };
    let relaxed = "st.relaxed.gpu.global.u32 [%d10], 2;";
    is_found(&three, &[]);
    is_found(&three.with(relaxed, "st.volatile.global.u32 [%d10], 2;"), &[]);
    // An atomic continues the release sequence. A thread that has acquired may also release again.
    is_silent(&three.with(relaxed, "atom.relaxed.gpu.global.exch.b32 %r22, [%d10], 2;"));
    is_silent(&three.with(relaxed, "red.relaxed.gpu.global.add.u32 [%d10], 1;"));
    is_silent(&three.with(relaxed, "fence.acq_rel.gpu;\nst.relaxed.gpu.global.u32 [%d10], 2;"));
}

/// The pattern "fence, barrier, volatile flag": the thread that sets the flag has no fence after the barrier, and the reader has none.
#[test]
fn a_flag_that_is_read_without_a_fence_names_the_fence() {
    let body = "add.u64 %d10, %d1, 512;\nsetp.eq.u32 %p4, %r2, 1;\n@%p4 bra LOOK;\nst.global.u32 [%d4], %r1;\nFENCE\nbar.sync 0;\nAGAIN\n\
        @%p1 st.volatile.global.u32 [%d10], 7;\nbra DONE;\n\
        LOOK:\n@!%p1 bra MEET;\nPOLL:\nld.volatile.global.u32 %r20, [%d10];\nsetp.ne.u32 %p6, %r20, 7;\n@%p6 bra POLL;\nACQUIRE\n\
        MEET:\nbar.sync 0;\nld.global.u32 %r21, [%d4];\nst.global.u32 [%d4+1024], %r21;\nDONE:";
    let of = |fence: &str, again: &str, acquire: &str| {
        Case { blocks: 2, ..case(body) }.with("FENCE", fence).with("AGAIN", again).with("ACQUIRE", acquire)
    };
    let fence = "fence.acq_rel.gpu;";
    is_silent(&of("", fence, fence));
    let found = of("", fence, "").finds(FindingKind::Race, "acquire fence");
    assert_eq!(found.rule, Rule::AcquireFence);
    assert!(found.detail.contains("ld.volatile"), "{found}");
    is_found(&of(fence, "", ""), &[Rule::AcquireFence]);
    is_found(&of(fence, "", fence), &[Rule::ReleaseFence]);
    is_found(&of("", "", fence), &[Rule::ReleaseFence]);
    is_found(&of("", "fence.acq_rel.cta;", fence), &[Rule::Scope]);
}

/// A thread accesses a place plainly, and then by an atomic. The atomic does not order the plain access for other threads.
#[test]
fn an_atomic_does_not_hide_a_plain_access_of_its_thread() {
    // Thread 0 of block 0, and another thread: a lane, a warp, a block.
    let others = [("%r1, 1", 1), ("%r1, 32", 1), ("%r2, 1", 2)];
    let plain = ["st.SPACE.u32 [AT], 0;", "ld.SPACE.u32 %r20, [AT];"];
    let atomics = [
        "atom.SPACE.add.u32 %r21, [AT], 1;",
        "red.SPACE.max.u32 [AT], 1;",
        "st.relaxed.gpu.SPACE.u32 [AT], 1;",
        "atom.acquire.gpu.SPACE.exch.b32 %r21, [AT], 1;",
        "st.volatile.SPACE.u32 [AT], 1;",
    ];
    for (other, blocks) in others {
        for (space, at) in [("global", "%d1+512"), ("shared", "%r4")] {
            if space == "shared" && blocks == 2 {
                continue;
            }
            for (p, plain) in plain.iter().enumerate() {
                for (a, atomic) in atomics.iter().enumerate() {
                    let second = atomics[(a + p) % atomics.len()];
                    let own =
                        if blocks == 2 { "setp.eq.and.u32 %p4, %r2, 0, %p1;" } else { "setp.eq.u32 %p4, %r1, 0;" };
                    let is_other = if blocks == 2 {
                        format!("setp.eq.and.u32 %p5, {other}, %p1;")
                    } else {
                        format!("setp.eq.u32 %p5, {other};")
                    };
                    let body = format!(
                        "{own}\n{is_other}\n@%p4 bra OWN;\nbra NEXT;\nOWN:\n{plain}\nMEET0\n{atomic}\nNEXT:\nMEET\n@!%p5 bra END;\n{second}\nEND:"
                    );
                    let body = body.replace("SPACE", space).replace("AT]", &format!("{at}]"));
                    let wrong = Case { blocks, ..case(&body.replace("MEET0", "").replace("MEET", "")) };
                    is_found(&wrong, &[Rule::AtomicOnBothSides]);
                    if blocks == 1 {
                        is_silent(&case(&body.replace("MEET0", "").replace("MEET", "bar.sync 0;")));
                    }
                }
            }
        }
    }
}

/// An atomic of one thread, an atomic of another, and then a plain access of the other, which races with the first.
#[test]
fn an_atomic_does_not_hide_an_atomic_of_another() {
    let body = "atom.shared.add.u32 %r20, [%r4], 1;\nMEET\n@%p1 ld.shared.u32 %r21, [%r4];";
    is_found(&case(&body.replace("MEET", "")), &[Rule::AtomicOnBothSides]);
    is_silent(&case(&body.replace("MEET", "bar.sync 0;")));
}

#[test]
fn atomic_accesses_of_other_widths_are_found() {
    let (four, places) = ("st.relaxed.gpu.global.u32 [%d1], 1;", [("u8", 3), ("u16", 2), ("u32", 0), ("u64", 0)]);
    for (ty, at) in places {
        let wide = if ty == "u64" { "%d11" } else { "%r20" };
        let body =
            format!("@%p1 {four}\nsetp.eq.u32 %p4, %r1, 32;\n@%p4 ld.relaxed.gpu.global.{ty} {wide}, [%d1+{at}];");
        if ty == "u32" {
            is_silent(&case(&body));
        } else {
            is_found(&case(&body), &[Rule::OneWidth]);
        }
    }
}

#[test]
fn proxy_fences_order_their_state_space_alone() {
    let stores = store(STORE);
    let fence = "fence.proxy.async.shared::cta;";
    for good in ["fence.proxy.async;", "fence.proxy.async.shared::cluster;"] {
        is_silent(&stores.with(fence, good));
    }
    is_found(&stores.with(fence, "fence.proxy.async.global;"), &[Rule::ProxyFence]);
    // The other direction: threads write global memory, and a copy brings it to shared memory.
    let load = case(
        "@%p1 mbarrier.init.shared::cta.b64 [%r6], 1;\nst.global.u32 [%d4], %r1;\nFENCE\nbar.sync 0;\n\
         @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r6], 256;\n\
         @%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r4], [%d1], 256, [%r6];\n\
         WAIT:\nmbarrier.try_wait.parity.shared::cta.b64 %p2, [%r6], 0;\n@!%p2 bra WAIT;\n\
         ld.shared.u32 %r9, [%r5];\nst.global.u32 [%d4+1024], %r9;",
    );
    for good in ["fence.proxy.async;", "fence.proxy.async.global;"] {
        is_silent(&load.with("FENCE", good));
    }
    for bad in ["", "fence.proxy.async.shared::cta;", "fence.proxy.async.shared::cluster;"] {
        is_found(&load.with("FENCE", bad), &[Rule::ProxyFence]);
    }
}

#[test]
fn the_read_only_path_is_for_what_the_kernel_only_reads() {
    for ty in ["u8", "u16", "u32", "v2.u32", "v4.u32"] {
        let to = match ty {
            "v2.u32" => "{%r20, %r21}",
            "v4.u32" => "{%r20, %r21, %r22, %r23}",
            _ => "%r20",
        };
        let read = format!("ld.global.nc.{ty} {to}, [AT];");
        let own = read.replace("AT", "%d10");
        let body =
            format!("mul.wide.u32 %d3, %r1, 16;\nadd.u64 %d10, %d1, %d3;\nst.global.u32 [%d10], %r1;\nMEET\n{own}");
        for meet in ["", "bar.sync 0;", "fence.acq_rel.gpu;\nbar.sync 0;"] {
            is_found(&case(&body.replace("MEET", meet)), &[Rule::ReadOnlyPath]);
            is_silent(&case(&body.replace("MEET", meet).replace(".nc", "")));
        }
        // It reads another tensor, or a place before its own write.
        let input = read.replace("AT", "%d11");
        is_silent(&case(&format!(
            "mul.wide.u32 %d3, %r1, 16;\nadd.u64 %d11, %d2, %d3;\nst.global.u32 [%d4], %r1;\n{input}"
        )));
        is_silent(&case(&format!(
            "mul.wide.u32 %d3, %r1, 16;\nadd.u64 %d10, %d1, %d3;\n{own}\nst.global.u32 [%d10], %r1;"
        )));
    }
    let early = |body: &str| Case { early: true, ..case(body) };
    let read = "ld.global.nc.u32 %r20, [%d5];";
    is_found(&early(&format!("{read}\ngriddepcontrol.wait;")), &[Rule::GridDependency]);
    is_silent(&early(&format!("griddepcontrol.wait;\n{read}")));
}

#[test]
fn a_peer_has_begun_before_its_memory_is_accessed() {
    let first = "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\nst.shared::cluster.u32 [%r8], %r9;";
    let access = |meet: &str, access: &str| peers(PEERS).with(first, &format!("{meet}\n{access}"));
    let meet = "barrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.acquire.aligned;";
    let generic = "cvt.u64.u32 %d8, %r8;\ncvta.shared.u64 %d8, %d8;";
    let accesses = [
        "st.shared::cluster.u32 [%r8], %r9;".to_owned(),
        "ld.shared::cluster.u32 %r9, [%r8];\nst.shared.u32 [%r5+2048], %r9;".to_owned(),
        "red.shared::cluster.add.u32 [%r8], 1;".to_owned(),
        "atom.shared::cluster.exch.b32 %r20, [%r8], 1;".to_owned(),
        format!("{generic}\nst.u32 [%d8], %r9;"),
        format!("{generic}\nld.u32 %r9, [%d8];"),
        format!("{generic}\natom.add.u32 %r9, [%d8], 1;"),
    ];
    for each in &accesses {
        is_found(&access("", each), &[Rule::PeerStart]);
        is_found(&access("bar.sync 0;", each), &[Rule::PeerStart]);
        let (report, _) = access(meet, each).run(RACES, 0);
        assert!(report.findings.iter().all(|f| f.rule != Rule::PeerStart), "{report}");
    }
    // One warp has waited, and synchronises with the others of its block.
    let told = "barrier.cluster.arrive.aligned;\nsetp.lt.u32 %p4, %r1, 32;\n@!%p4 bra MEET;\nbarrier.cluster.wait.aligned;\nMEET:\nbar.sync 0;\n\
        @!%p4 barrier.cluster.wait.aligned;";
    let (report, _) = access(told, &accesses[0]).run(RACES, 0);
    assert!(report.findings.iter().all(|f| f.rule != Rule::PeerStart), "{report}");
    // Copies to all blocks, and arrivals at a peer's barrier.
    let barrier = "barrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.acquire.aligned;";
    is_found(&peers(MULTICAST).with(barrier, "bar.sync 0;"), &[Rule::PeerStart, Rule::MbarrierInit]);
}

/// Each of two barriers tracks the copies that were issued before it.
const STAGES: &str = "add.u32 %r7, %r6, 8;
@%p1 mbarrier.init.shared::cta.b64 [%r6], 64;
@%p1 mbarrier.init.shared::cta.b64 [%r7], 64;
bar.sync 0;
cp.async.ca.shared.global [%r5], [%d5], 4;
cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%r6];
cp.async.ca.shared.global [%r5+256], [%d5+256], 4;
cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%r7];
xor.b32 %r8, %r3, 132;
add.u32 %r8, %r4, %r8;
FIRST:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r6], 0;
@!%p2 bra FIRST;
ld.shared.u32 %r9, [%r8];
st.global.u32 [%d4], %r9;
SECOND:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r7], 0;
@!%p2 bra SECOND;
ld.shared.u32 %r9, [%r8+256];
st.global.u32 [%d4+256], %r9;";

#[test]
fn a_later_barrier_takes_no_copies_over_that_an_earlier_one_tracks() {
    let stages = case(STAGES);
    let out = stages.silent();
    assert_eq!((out[0], out[64]), (33, 64 + 33));
    // The later one tracks the earlier copies too.
    let first = "FIRST:\nmbarrier.try_wait.parity.shared::cta.b64 %p2, [%r6], 0;\n@!%p2 bra FIRST;\nld.shared.u32 %r9, [%r8];\nst.global.u32 [%d4], %r9;";
    let late = stages.with(first, "").with(
        "ld.shared.u32 %r9, [%r8+256];",
        "ld.shared.u32 %r10, [%r8];\nst.global.u32 [%d4], %r10;\nld.shared.u32 %r9, [%r8+256];",
    );
    for seed in 0..6 {
        let (report, _) = late.run(RACES, seed);
        assert!(report.is_clean(), "seed {seed}: {report}");
    }
    // The earlier one does not track the later copies.
    let early = stages.with("ld.shared.u32 %r9, [%r8];", "ld.shared.u32 %r9, [%r8+256];");
    is_found(&early, &[Rule::CopyArrival]);
}

#[test]
fn a_phase_may_be_unfinished_when_its_block_ends() {
    let body = "@%p1 mbarrier.init.shared::cta.b64 [%r6], 65;\nbar.sync 0;\nmbarrier.arrive.shared::cta.b64 %d7, [%r6];\nst.global.u32 [%d4], %r1;";
    assert_eq!(case(body).silent()[63], 63);
}

/// As the destructor of `cuda::pipeline`: lanes that have used a barrier match, and one of them invalidates it.
#[test]
fn a_barrier_is_invalidated_behind_an_instruction_of_the_whole_warp() {
    let body = "@%p1 mbarrier.init.shared::cta.b64 [%r6], 32;\nbar.sync 0;\nmbarrier.arrive.shared::cta.b64 %d7, [%r6];\n\
        WAIT:\nmbarrier.test_wait.shared::cta.b64 %p2, [%r6], %d7;\n@!%p2 bra WAIT;\nMATCH\n@%p1 mbarrier.inval.shared::cta.b64 [%r6];";
    let warp = |with: &str| Case { threads: 32, ..case(body) }.with("MATCH", with);
    for with in [
        "match.any.sync.b32 %r20, %r4, 0xffffffff;",
        "shfl.sync.bfly.b32 %r20, %r4, 1, 31, -1;",
        "bar.warp.sync -1;",
        "bar.sync 0;",
    ] {
        is_silent(&warp(with));
    }
    is_found(&warp(""), &[]);
    // It orders no memory.
    let memory = "st.shared.u32 [%r5], %r1;\nmatch.any.sync.b32 %r20, %r4, 0xffffffff;\nxor.b32 %r8, %r5, 4;\nld.shared.u32 %r9, [%r8];";
    is_found(&Case { threads: 32, ..case(memory) }, &[Rule::WarpOrder]);
}
