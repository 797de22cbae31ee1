//! `mbarrier` completion by `cp.async.mbarrier.arrive` and `st.async`.

use ptx_exec::FindingKind::{Asynchrony, BarrierMisuse, Deadlock, Misaligned, OutOfBounds, Race, Uninitialized};
use ptx_exec::Modes;

use crate::hopper::{Case, case};

/// Each thread copies a word. After all arrivals it reads the word of a thread in the other warp.
pub(crate) const COPIES: &str = "@%p1 mbarrier.init.shared::cta.b64 [%r6], 64;
bar.sync 0;
cp.async.ca.shared.global [%r5], [%d5], 4;
cp.async.mbarrier.arrive.noinc.shared.b64 [%r6];
WAIT:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r6], 0;
@!%p2 bra WAIT;
xor.b32 %r8, %r3, 132;
add.u32 %r8, %r4, %r8;
ld.shared.u32 %r9, [%r8];
st.global.u32 [%d4], %r9;";

#[test]
fn barriers_track_copies() {
    let noinc = case(COPIES);
    let expected: Vec<u32> = (0..64).map(|t| t ^ 33).collect();
    assert_eq!(noinc.silent()[..64], expected);
    // The arrival of the copies is beyond the expected count, which has only the thread's own arrival.
    let counted = noinc.with(
        "arrive.noinc.shared.b64 [%r6];",
        "arrive.shared::cta.b64 [%r6];\nmbarrier.arrive.shared::cta.b64 _, [%r6];",
    );
    assert_eq!(counted.silent()[..64], expected);
    let generic = "cvt.u64.u32 %d7, %r6;\ncvta.shared.u64 %d7, %d7;\ncp.async.mbarrier.arrive.noinc.b64 [%d7];";
    assert_eq!(noinc.with("cp.async.mbarrier.arrive.noinc.shared.b64 [%r6];", generic).silent()[..64], expected);
    // A thread that has waited for its copies may publish them itself.
    let waited = noinc.with("cp.async.mbarrier", "cp.async.wait_all;\ncp.async.mbarrier");
    assert_eq!(waited.silent()[..64], expected);
    // The copies of an exited thread still arrive.
    let leaves =
        noinc.with("WAIT:", "setp.ge.u32 %p3, %r1, 32;\n@%p3 bra OUT;\nWAIT:").with("%d4], %r9;", "%d4], %r9;\nOUT:");
    assert_eq!(leaves.silent()[..32], expected[..32]);
}

/// Findings depend on the interleaving, but every seed gives one.
#[track_caller]
fn is_found(case: &Case) {
    for seed in 0..12 {
        let (report, _) = case.run(Modes { bounds: false, init: false, races: true }, seed);
        assert!(!report.is_clean(), "seed {seed}: {}", case.body);
    }
}

#[test]
fn copies_that_a_barrier_does_not_track_are_found() {
    let copies = case(COPIES);
    let arrive = "cp.async.mbarrier.arrive.noinc.shared.b64 [%r6];";
    let copy = "cp.async.ca.shared.global [%r5], [%d5], 4;";
    copies
        .with("mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r6], 0;\n@!%p2 bra WAIT;", "")
        .finds(Race, "cp.async.ca");
    copies.with(arrive, "").finds(Deadlock, "0 of 64 have arrived");
    copies.with(arrive, "mbarrier.arrive.shared::cta.b64 _, [%r6];").finds(Race, "cp.async.ca");
    copies.with(&format!("{copy}\n{arrive}"), &format!("{arrive}\n{copy}")).finds(Race, "cp.async.ca");
    copies.with(arrive, &format!("{arrive}\n{copy}")).finds(Race, "cp.async.ca");
    is_found(&copies.with("[%r6], 64;", "[%r6], 32;"));
    copies.with("[%r6], 64;", "[%r6], 65;").finds(Deadlock, "64 of 65 have arrived");
    copies.with("@%p1 mbarrier.init.shared::cta.b64 [%r6], 64;", "").finds(BarrierMisuse, "no mbarrier is initialised");
    copies.with("bar.sync 0;", "").finds(BarrierMisuse, "initialised");
    copies.with("arrive.noinc", "arrive").finds(Deadlock, "64 of 128 have arrived");
    copies.with("arrive.noinc.shared.b64 [%r6]", "arrive.noinc.shared.b64 [%r6+4]").finds(Misaligned, "");
    // It publishes copies only.
    copies.with(copy, "st.shared.u32 [%r5], %r1;").finds(Race, "st.shared");
    // The destination of a copy is in use until the phase ends.
    copies.with("WAIT:", "st.shared.u32 [%r5], %r1;\nWAIT:").finds(Race, "cp.async.ca");
}

/// Each thread stores a word to the other block of its cluster.
const STORES: &str = "@%p1 mbarrier.init.shared::cta.b64 [%r6], 1;
fence.mbarrier_init.release.cluster;
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r6], 256;
mov.u32 %r7, %cluster_ctarank;
xor.b32 %r8, %r7, 1;
mapa.shared::cluster.u32 %r9, %r5, %r8;
mapa.shared::cluster.u32 %r10, %r6, %r8;
add.u32 %r11, %r1, %r2;
st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r9], %r11, [%r10];
WAIT:
mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%r6], 0;
@!%p2 bra WAIT;
xor.b32 %r12, %r3, 132;
add.u32 %r12, %r4, %r12;
ld.shared.u32 %r13, [%r12];
mad.lo.u32 %r14, %r2, 256, %r3;
cvt.u64.u32 %d7, %r14;
add.u64 %d7, %d1, %d7;
st.global.u32 [%d7], %r13;";

const STORE: &str = "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r9], %r11, [%r10];";

fn peers(body: &str) -> Case {
    Case { blocks: 2, cluster: 2, ..case(body) }
}

#[test]
fn stores_to_peers_tell_their_barriers() {
    let stores = peers(STORES);
    let expected: Vec<u32> = (0..128).map(|i| ((i % 64) ^ 33) + 1 - i / 64).collect();
    assert_eq!(stores.silent()[..128], expected);
    // Generic addresses, and vectors of other types: the even threads store for their neighbours too.
    let generic = "cvt.u64.u32 %d8, %r5;\ncvta.shared.u64 %d8, %d8;\nmapa.u64 %d8, %d8, %r8;\ncvt.u64.u32 %d9, %r6;\n\
        cvta.shared.u64 %d9, %d9;\nmapa.u64 %d9, %d9, %r8;\nst.async.mbarrier::complete_tx::bytes.b32 [%d8], %r11, [%d9];";
    assert_eq!(stores.with(STORE, generic).silent()[..128], expected);
    let pairs = "and.b32 %r20, %r1, 1;\nsetp.eq.u32 %p4, %r20, 0;\nadd.u32 %r21, %r11, 1;\n\
        @%p4 st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.s32 [%r9], {%r11, %r21}, [%r10];";
    assert_eq!(stores.with(STORE, pairs).silent()[..128], expected);
    let wide = "and.b32 %r20, %r1, 3;\nsetp.eq.u32 %p4, %r20, 0;\nadd.u32 %r21, %r11, 1;\nadd.u32 %r22, %r11, 2;\n\
        add.u32 %r23, %r11, 3;\nmov.b64 %d8, {%r11, %r21};\nmov.b64 %d9, {%r22, %r23};\n\
        @%p4 st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b64 [%r9], {%d8, %d9}, [%r10];";
    assert_eq!(stores.with(STORE, wide).silent()[..128], expected);
}

#[test]
fn stores_to_peers_that_are_wrong_are_found() {
    let stores = peers(STORES);
    stores
        .with("mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%r6], 0;\n@!%p2 bra WAIT;", "")
        .finds(Race, "st.async");
    // One store too many, and half a store: the phase ends too early, or never.
    is_found(&stores.with(", 256;", ", 252;"));
    stores.with(", 256;", ", 254;").finds(Deadlock, "2 B more than expected");
    stores.with(", 256;", ", 260;").finds(Deadlock, "4 B are missing");
    stores.with("%r11, [%r10];", "%r11, [%r6];").finds(BarrierMisuse, "another block than the bytes");
    stores.with("%r11, [%r10];", "%r11, [%r10+8];").finds(BarrierMisuse, "no mbarrier is initialised");
    stores.with("[%r9], %r11", "[%r9+2], %r11").finds(Misaligned, "");
    stores.with("[%r9], %r11", "[%r9+65536], %r11").finds(OutOfBounds, "");
    // The peer may still read its memory, or have written it.
    let barriers = "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;";
    stores.with(STORE, &format!("st.shared.u32 [%r5], %r1;\n{STORE}")).finds(Race, "st.async");
    let before = format!("st.shared.u32 [%r5], %r1;\n{barriers}");
    // It uses the generic proxy, so no proxy fence is missing.
    stores.with(barriers, &before).silent();
    stores.with(barriers, "bar.sync 0;").finds(BarrierMisuse, "may not be visible yet");
    stores
        .with("mbarrier.try_wait", "bra OUT;\nmbarrier.try_wait")
        .with("%d7], %r13;", "%d7], %r13;\nOUT:")
        .finds(Asynchrony, "");
}

/// An uninitialised value stays uninitialised at the destination.
#[test]
fn stores_of_nothing_are_found_where_they_decide() {
    let stores = peers(STORES).with("%r11, [%r10];", "%r30, [%r10];");
    let (report, _) = stores.run(Modes { bounds: false, init: true, races: false }, 0);
    let found = report.findings.iter().find(|f| f.kind == Uninitialized).expect("a finding");
    assert!(found.to_string().contains("stored to global memory"), "{found}");
    let address = peers(STORES).with("[%r9], %r11", "[%r30], %r11");
    let (report, _) = address.run(Modes { bounds: false, init: true, races: false }, 0);
    assert!(report.findings.iter().any(|f| f.kind == Uninitialized), "{report}");
}
