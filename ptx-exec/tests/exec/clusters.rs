//! Blocks of a cluster: each other's shared memory and barriers, copies to all of them, and the registers that warps pass on.

use ptx_exec::FindingKind;
use ptx_exec::Modes;

use crate::hopper::{Case, case};

/// Each block of a cluster writes to the other's shared memory.
pub(crate) const PEERS: &str = "mov.u32 %r7, %cluster_ctarank;
xor.b32 %r7, %r7, 1;
mapa.shared::cluster.u32 %r8, %r5, %r7;
add.u32 %r9, %r1, %r2;
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
st.shared::cluster.u32 [%r8], %r9;
barrier.cluster.arrive.release.aligned;
barrier.cluster.wait.acquire.aligned;
ld.shared.u32 %r10, [%r5];
mad.lo.u32 %r11, %r2, 256, %r3;
cvt.u64.u32 %d7, %r11;
add.u64 %d7, %d1, %d7;
st.global.u32 [%d7], %r10;";

pub(crate) fn peers(body: &str) -> Case {
    Case { blocks: 4, cluster: 2, ..case(body) }
}

#[test]
fn blocks_of_a_cluster_share_memory() {
    let out = peers(PEERS).silent();
    assert_eq!([out[0], out[64], out[128], out[192], out[255]], [1, 0, 3, 2, 65]);
    let generic = PEERS.replace(
        "mapa.shared::cluster.u32 %r8, %r5, %r7;",
        "cvt.u64.u32 %d8, %r5;\ncvta.shared.u64 %d8, %d8;\nmapa.u64 %d8, %d8, %r7;",
    );
    let generic = generic.replace("st.shared::cluster.u32 [%r8]", "st.u32 [%d8]");
    assert_eq!(peers(&generic).silent()[64], 0);
}

#[test]
fn clusters_that_do_not_wait_for_each_other_are_found() {
    use FindingKind::{Asynchrony, BarrierMisuse, Deadlock, OutOfBounds, Race};
    let case = peers(PEERS);
    let last = "barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;";
    case.with(last, "").finds(Race, "");
    case.with(last, "").with("ld.shared.u32 %r10, [%r5];", "mov.u32 %r10, 0;").finds(Asynchrony, "may have exited");
    case.with("barrier.cluster.arrive.release.aligned;", "barrier.cluster.arrive.relaxed.aligned;").finds(Race, "");
    case.with(
        "barrier.cluster.arrive.release.aligned;",
        "fence.acq_rel.cluster;\nbarrier.cluster.arrive.relaxed.aligned;",
    )
    .silent();
    case.with("barrier.cluster.arrive.aligned;\n", "").finds(BarrierMisuse, "without having arrived");
    case.with("barrier.cluster.wait.aligned;\n", "").finds(BarrierMisuse, "again");
    case.with("barrier.cluster.arrive.aligned;", "setp.eq.u32 %p2, %r7, 0;\nsetp.lt.and.u32 %p2, %r1, 32, %p2;\n@%p2 bar.sync 3, 64;\nbarrier.cluster.arrive.aligned;")
        .finds(Deadlock, "cluster's barrier");
    case.with("st.shared::cluster.u32", "st.shared::cta.u32").finds(OutOfBounds, "");
    case.with("xor.b32 %r7, %r7, 1", "add.u32 %r7, %r7, 1").finds(OutOfBounds, "");
}

/// The first block of a cluster loads for both; each waits for its own barrier.
pub(crate) const MULTICAST: &str = "mov.u32 %r7, %cluster_ctarank;
@%p1 mbarrier.init.shared::cta.b64 [%r6], 1;
@%p1 fence.mbarrier_init.release.cluster;
barrier.cluster.arrive.relaxed.aligned;
barrier.cluster.wait.acquire.aligned;
mov.u32 %r8, 0;
mov.u16 %h1, 3;
@!%p1 bra WAIT;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r6], 512;
setp.ne.u32 %p3, %r7, 0;
@%p3 bra WAIT;
cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r4], [%d6, {%r8, %r8}], [%r6], %h1;
WAIT:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r6], 0;
@!%p2 bra WAIT;
ld.shared.u32 %r10, [%r5];
mad.lo.u32 %r11, %r2, 256, %r3;
cvt.u64.u32 %d7, %r11;
add.u64 %d7, %d1, %d7;
st.global.u32 [%d7], %r10;";

#[test]
fn copies_go_to_all_blocks_of_a_mask() {
    let case = peers(MULTICAST);
    let out = case.silent();
    assert_eq!([out[0], out[63], out[64], out[127]], [0, 63, 0, 63]);
    case.with("barrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.acquire.aligned;", "bar.sync 0;")
        .finds(FindingKind::BarrierMisuse, "initialised");
    case.with("@%p1 fence.mbarrier_init.release.cluster;\n", "")
        .finds(FindingKind::BarrierMisuse, "may not be visible");
    // A barrier that is not relaxed publishes initialisations, too.
    case.with("@%p1 fence.mbarrier_init.release.cluster;\n", "").with("arrive.relaxed", "arrive").silent();
    case.with("mov.u16 %h1, 3", "mov.u16 %h1, 5").finds(FindingKind::OutOfBounds, "mask");
    case.with("mov.u16 %h1, 3", "mov.u16 %h1, 1").finds(FindingKind::Deadlock, "512 B are missing");
}

#[test]
fn peers_arrive_at_each_others_barriers() {
    let body = "mov.u32 %r7, %cluster_ctarank;
@%p1 mbarrier.init.shared::cta.b64 [%r6], 64;
@%p1 fence.mbarrier_init.release.cluster;
barrier.cluster.arrive.relaxed.aligned;
barrier.cluster.wait.acquire.aligned;
xor.b32 %r8, %r7, 1;
mapa.shared::cluster.u32 %r9, %r5, %r8;
mapa.shared::cluster.u32 %r10, %r6, %r8;
st.shared::cluster.u32 [%r9], %r1;
mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r10];
WAIT:
mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%r6], 0;
@!%p2 bra WAIT;
xor.b32 %r12, %r5, 64;
ld.shared.u32 %r11, [%r12];
add.u32 %r13, %r3, 512;
st.global.u32 [%d4], %r11;";
    let mut case = peers(body);
    case.blocks = 2;
    // Both blocks write the same.
    let (report, _) = case.run(Modes { bounds: true, init: true, races: false }, 0);
    assert!(report.is_clean(), "{report}");
    let apart = case.with(
        "st.global.u32 [%d4], %r11;",
        "mad.lo.u32 %r11, %r2, 256, %r3;\ncvt.u64.u32 %d7, %r11;\nadd.u64 %d7, %d1, %d7;\nst.global.u32 [%d7], %r12;",
    );
    apart.silent();
    apart
        .with("shared::cta.b64 [%r6], 64;", "shared::cta.b64 [%r6], 65;")
        .finds(FindingKind::Deadlock, "64 of 65 have arrived");
    apart.with("mbarrier.arrive.release.cluster", "mbarrier.arrive.relaxed.cluster").finds(FindingKind::Race, "");
    apart
        .with("xor.b32 %r8, %r7, 1;", "mov.u32 %r8, %r7;")
        .with(
            "st.shared::cluster.u32 [%r9], %r1;",
            "xor.b32 %r8, %r7, 1;\nmapa.shared::cluster.u32 %r9, %r5, %r8;\nst.shared::cluster.u32 [%r9], %r1;",
        )
        .finds(FindingKind::Race, "");
}

#[test]
fn registers_are_passed_on() {
    let body = "setp.lt.u32 %p2, %r1, 128;
@%p2 bra TAKE;
setmaxnreg.dec.sync.aligned.u32 40;
bra OUT;
TAKE:
setmaxnreg.inc.sync.aligned.u32 240;
OUT:
st.global.u32 [%d4], %r1;";
    let case = Case { threads: 384, ..case(body) };
    // 168 each: 2 x 128 x 128 are given back, and 128 x 72 taken.
    assert_eq!(case.silent()[383], 383);
    let found =
        case.with("dec.sync.aligned.u32 40", "dec.sync.aligned.u32 152").finds(FindingKind::Deadlock, "registers");
    assert!(found.detail.contains("given back so far"), "{}", found.detail);
    case.with("dec.sync.aligned.u32 40", "dec.sync.aligned.u32 200").finds(FindingKind::Asynchrony, "168 registers");
}
