//! Bulk and tensor copies. Correct kernels give no finding at any timing of the copies, and each planted defect is found.

use ptx_exec::FindingKind;
use ptx_exec::Modes;
use ptx_exec::{MapSwizzle, TensorMap, Ty};

use crate::hopper::{Case, case};

pub(crate) const LOAD: &str = "@%p1 mbarrier.init.shared::cta.b64 [%r6], 1;
@%p1 fence.mbarrier_init.release.cluster;
bar.sync 0;
mov.u32 %r7, 0;
mov.u32 %r8, 2;
@!%p1 bra WAIT;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r6], 512;
cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r4], [%d6, {%r7, %r8}], [%r6];
WAIT:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r6], 0;
@!%p2 bra WAIT;
ld.shared.u32 %r9, [%r5];
st.global.u32 [%d4], %r9;";

#[test]
fn boxes_are_loaded() {
    let out = case(LOAD).silent();
    assert_eq!(out[..64], (64..128).collect::<Vec<u32>>());
    let (report, _) = Case { profile: true, ..case(LOAD) }.run(Modes::PLAIN, 0);
    assert_eq!(report.profile.expect("a profile").total("cp.async.bulk").bulk_bytes, 512);
    // Elements outside the tensor are zero, but count as bytes of the copy.
    let out = case(LOAD).with("mov.u32 %r8, 2", "mov.u32 %r8, -1").silent();
    assert_eq!(out[..64], [vec![0; 32], (0..32).collect()].concat());
    let out = case(LOAD).with("mov.u32 %r7, 0", "mov.u32 %r7, 30").silent();
    assert_eq!(out[..5], [94, 95, 0, 0, 0]);
    // A map that 32 bits name, as LLVM does it.
    let short = "mov.b32 %r20, map;\ncvt.u64.u32 %d6, %r20;\ncvta.param.u64 %d6, %d6;\n";
    assert_eq!(case(&format!("{short}{LOAD}")).silent()[..64], (64..128).collect::<Vec<u32>>());
    // By the state that an arrival returned.
    let by_state = case(LOAD)
        .with("expect_tx.shared::cta.b64 _,", "expect_tx.shared::cta.b64 %d7,")
        .with("try_wait.parity.shared::cta.b64 %p2, [%r6], 0;", "try_wait.shared::cta.b64 %p2, [%r6], %d7, 1000;")
        .with("@!%p1 bra WAIT;", "@!%p1 bra OUT;")
        .with("st.global.u32 [%d4], %r9;", "st.global.u32 [%d4], %r9;\nOUT:");
    assert_eq!(by_state.silent()[0], 64);
}

#[test]
fn loads_that_do_not_add_up_are_found() {
    use FindingKind::{BarrierMisuse, Deadlock, Race, TensorMap};
    let load = case(LOAD);
    // As compilers do it, initialisations come before copies by the block's barrier alone.
    load.with("@%p1 fence.mbarrier_init.release.cluster;", "").silent();
    load.with("bar.sync 0;", "").finds(BarrierMisuse, "initialised");
    load.with("@%p1 mbarrier.init.shared::cta.b64 [%r6], 1;", "").finds(BarrierMisuse, "no mbarrier is initialised");
    load.with("@!%p2 bra WAIT;", "").with("mbarrier.try_wait", "//").finds(Race, "cp.async.bulk.tensor");
    // The phase before the first counts as over. A wait for it reads too early, or the second phase never ends.
    let early = load.with("[%r6], 0;", "[%r6], 1;");
    assert!((0..3).all(|seed| !early.run(Modes::ALL, seed).0.is_clean()));
    load.with("_, [%r6], 512", "_, [%r6], 1024").finds(Deadlock, "512 B are missing");
    load.with("_, [%r6], 512", "_, [%r6], 256").finds(Deadlock, "256 B more than expected");
    load.with("mbarrier.init.shared::cta.b64 [%r6], 1;", "mbarrier.init.shared::cta.b64 [%r6], 2;")
        .finds(Deadlock, "1 of 2 have arrived");
    load.with("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r6], 512;", "").finds(Deadlock, "more than expected");
    // One extra arrival: in this phase, or in the next if the bytes came first.
    let twice = load.with("WAIT:", "mbarrier.arrive.shared::cta.b64 _, [%r6];\nWAIT:");
    let found = twice.run(Modes::PLAIN, 0).0.findings[0].to_string();
    assert!(found.contains("1 arrivals, but only 0 of 1"), "{found}");
    assert!((0..3).all(|seed| !twice.run(Modes::ALL, seed).0.is_clean()));
    // Bytes without a wait.
    let early = load.with("WAIT:\nmbarrier.try_wait", "WAIT:\nret;\nmbarrier.try_wait");
    early.finds(FindingKind::Asynchrony, "");
    load.with("2d", "1d").with("{%r7, %r8}", "{%r7}").finds(TensorMap, "1 coordinates");
    load.with("[%d6, {", "[%d6+64, {").finds(TensorMap, "no tensor map");
    load.with("bytes [%r4]", "bytes [%r4+64]").finds(TensorMap, "multiple of 128");
    load.with("bytes [%r4]", "bytes [%r4+48896]").finds(FindingKind::OutOfBounds, "512 B are copied");
    // Two copies to one place.
    let copy = LOAD.lines().find(|l| l.starts_with("cp.async")).expect("a copy");
    load.with("], 512;", "], 1024;").with(copy, &format!("{copy}\n{copy}")).finds(Race, "");
    // Threads write the destination of the copy, without a proxy fence and with one.
    load.with("bar.sync 0;", "st.shared.u32 [%r5], %r1;\nbar.sync 0;").finds(Race, "fence.proxy.async");
    load.with("bar.sync 0;", "st.shared.u32 [%r5], %r1;\nfence.proxy.async.shared::cta;\nbar.sync 0;").silent();
}

#[test]
fn swizzled_boxes_lie_as_their_maps_say() {
    for (swizzle, inner) in [(MapSwizzle::B32, 8), (MapSwizzle::B64, 16), (MapSwizzle::B128, 32)] {
        let mut of = case(LOAD).with("], 512;", &format!("], {};", inner * 16));
        of.spec = TensorMap::new(Ty::S32, &[32, 8], &[128], &[inner, 4]).swizzle(swizzle);
        let out = of.with("mov.u32 %r8, 2", "mov.u32 %r8, 0").with("ld.shared", "@%p3 ld.shared");
        let out = out
            .with("@%p3 ld.shared", &format!("setp.lt.u32 %p3, %r1, {};\nmov.u32 %r9, 0;\n@%p3 ld.shared", inner * 4))
            .silent();
        for (at, found) in out.iter().enumerate().take((inner as usize * 4).min(64)) {
            let byte = at * 4;
            let from = byte ^ (byte >> 7 & ((1 << swizzle.bits()) - 1)) << 4;
            let (row, column) = (from / 4 / inner as usize, from / 4 % inner as usize);
            assert_eq!(*found as usize, row * 32 + column, "{swizzle} {at}");
        }
    }
}

/// Bits of f32, and what an H200's TMA made of them by a map of tf32.
const ROUNDED: [(u32, u32); 16] = [
    (0x0000_0000, 0x0000_0000),
    (0x8000_0000, 0x8000_0000),
    (0x7f80_0000, 0x7f80_0000),
    (0x7fc0_0000, 0x7fff_e000),
    (0xffff_ffff, 0x7fff_e000),
    (0x7f80_1000, 0x7fff_e000),
    (0x0000_1000, 0x0000_0000),
    (0x0000_1001, 0x0000_2000),
    (0x0000_3000, 0x0000_4000),
    (0x8000_1000, 0x8000_0000),
    (0x007f_f000, 0x0080_0000),
    (0x3f80_1000, 0x3f80_0000),
    (0x3f80_2fff, 0x3f80_2000),
    (0xbf80_3000, 0xbf80_4000),
    (0x7f7f_f000, 0x7f80_0000),
    (0x7f7f_efff, 0x7f7f_e000),
];

#[test]
fn loads_round_to_tf32() {
    let words = |of: fn(&(u32, u32)) -> u32| ROUNDED.iter().map(of).collect::<Vec<u32>>();
    let mut rounds = case(LOAD).with("mov.u32 %r8, 2", "mov.u32 %r8, 0");
    rounds.spec = TensorMap::new(Ty::Tf32, &[32, 8], &[128], &[32, 4]);
    rounds.input = words(|(from, _)| *from).repeat(64).into_iter().flat_map(u32::to_le_bytes).collect();
    assert_eq!(rounds.silent()[..64], words(|(_, to)| *to).repeat(4));
    let mut copies = rounds.clone();
    copies.spec = TensorMap::new(Ty::F32, &[32, 8], &[128], &[32, 4]);
    assert_eq!(copies.silent()[..64], words(|(from, _)| *from).repeat(4));
}

pub(crate) const STORE: &str = "st.shared.u32 [%r5], %r1;
fence.proxy.async.shared::cta;
bar.sync 0;
mov.u32 %r7, 0;
mov.u32 %r8, 6;
@!%p1 bra OUT;
cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%d6, {%r7, %r8}], [%r4];
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
OUT:";

pub(crate) fn store(body: &str) -> Case {
    Case {
        stores: true,
        out: 1024,
        spec: TensorMap::new(Ty::S32, &[32, 8], &[128], &[32, 2]).swizzle(MapSwizzle::B128),
        ..case(body)
    }
}

#[test]
fn boxes_are_stored_and_added() {
    let out = store(STORE).silent();
    let exchanged = |at: u32| at ^ (at >> 5 & 7) << 2;
    assert_eq!(out[192..], (0..64).map(exchanged).collect::<Vec<u32>>());
    // Half of the box lies outside.
    let out = store(STORE).with("%r8, 6", "%r8, 7").silent();
    assert_eq!((out[223], out[224], out[255]), (u32::MAX, 0, 31));
    let add = store(STORE).with(
        "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group",
        "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group",
    );
    assert_eq!(add.silent()[192..194], [u32::MAX, 0]);
    let read = store(STORE).with("wait_group 0", "wait_group.read 0");
    assert_eq!(read.silent()[255], exchanged(63));
}

/// A row of 40 bytes uses half of its last chunk of 16 bytes. A store writes the whole chunk, as an H200 does.
#[test]
fn stores_write_whole_chunks_behind_the_extent() {
    let of_rows = |rows: u64, bytes: usize| Case {
        out: bytes,
        spec: TensorMap::new(Ty::S32, &[10, rows], &[48], &[32, 2]).swizzle(MapSwizzle::B128),
        ..store(STORE).with("%r8, 6", "%r8, 0")
    };
    let out = of_rows(2, 96).silent();
    assert_eq!(out[..12], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
    // The buffer ends after the last row.
    let short = of_rows(2, 88);
    short.finds(FindingKind::OutOfBounds, "8 lie behind the row's extent");
    let (report, _) = short.run(Modes::PLAIN, 0);
    assert_eq!(report.findings.first().map(|f| f.kind), Some(FindingKind::OutOfBounds), "{report}");
    // A store to the padding races with the copy.
    let touched = of_rows(2, 96).with("OUT:", "OUT:\nsetp.eq.u32 %p2, %r1, 63;\n@%p2 st.global.u32 [%d1+40], %r1;");
    touched.finds(FindingKind::Race, "cp.async.bulk.tensor");
}

#[test]
fn stores_without_their_fences_and_waits_are_found() {
    use FindingKind::{Asynchrony, Race};
    let case = store(STORE);
    case.with("fence.proxy.async.shared::cta;", "").finds(Race, "fence.proxy.async");
    case.with("bar.sync 0;", "").finds(Race, "");
    case.with("cp.async.bulk.commit_group;", "").finds(Asynchrony, "wait_group");
    case.with("cp.async.bulk.wait_group 0;", "").finds(Asynchrony, "wait_group");
    case.with("cp.async.bulk.wait_group 0;", "cp.async.bulk.wait_group 1;").finds(Asynchrony, "wait_group");
    // Overwritten while it is read, and not.
    let again = "OUT:\nbar.sync 0;\nst.shared.u32 [%r5], 5;";
    case.with("OUT:", again).silent();
    case.with("OUT:", again).with("cp.async.bulk.wait_group 0;", "").finds(Race, "");
    case.with("OUT:", "OUT:\nbar.sync 0;\nld.global.u32 %r9, [%d4+768];").silent();
    let seen = case.with("OUT:", "OUT:\nbar.sync 0;\nld.global.u32 %r9, [%d4+768];");
    seen.with("wait_group 0", "wait_group.read 0").finds(Race, "");
}

#[test]
fn bytes_are_copied_both_ways() {
    let there = LOAD.replace(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r4], [%d6, {%r7, %r8}], [%r6];",
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r4], [%d2], 512, [%r6];",
    );
    assert_eq!(case(&there).silent()[..64], (0..64).collect::<Vec<u32>>());
    case(&there).with("[%d2], 512", "[%d2+8], 512").finds(FindingKind::Misaligned, "16");
    let back = STORE.replace(
        "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%d6, {%r7, %r8}], [%r4];",
        "cp.async.bulk.global.shared::cta.bulk_group [%d1], [%r4], 256;",
    );
    assert_eq!(store(&back).silent()[..64], (0..64).collect::<Vec<u32>>());
    let sum = back.replace(
        "cp.async.bulk.global.shared::cta.bulk_group",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.max.s32",
    );
    assert_eq!(store(&sum).silent()[..64], (0..64).collect::<Vec<u32>>());
    store(&back).with("[%d1], [%r4], 256", "[%d1+896], [%r4], 256").finds(FindingKind::OutOfBounds, "");
}
