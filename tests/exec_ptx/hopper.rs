//! Asynchrony and clusters: what is right is silent whenever copies and products happen, and each planted defect is found.

use cutemplate::dtype::DType;
use cutemplate::exec::ptx::{Buffer, Data, Modes, Module, TensorCores};
use cutemplate::exec::{Finding, FindingKind, Report};
use cutemplate::tiling::{MapSwizzle, TensorMapSpec};

/// One launch of an entry `k(out, in, map)` with 48 KiB of shared memory at `s` and barriers at `bar`.
#[derive(Clone)]
pub(crate) struct Case {
    pub(crate) body: String,
    pub(crate) threads: u32,
    pub(crate) blocks: u32,
    pub(crate) cluster: u32,
    /// Whether the map is of the output.
    pub(crate) stores: bool,
    pub(crate) spec: TensorMapSpec,
    pub(crate) out: usize,
    pub(crate) input: Vec<u8>,
    pub(crate) cores: TensorCores,
    pub(crate) profile: bool,
}

pub(crate) fn case(body: &str) -> Case {
    Case {
        body: body.to_owned(),
        threads: 64,
        blocks: 1,
        cluster: 1,
        stores: false,
        spec: TensorMapSpec::matrix(0, DType::I32, [32, 8], 128, [32, 4], MapSwizzle::None),
        out: 4096,
        input: (0..1024_u32).flat_map(u32::to_le_bytes).collect(),
        cores: TensorCores::Fast,
        profile: false,
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
        let launch = launch.tensor_cores(self.cores).profile(self.profile);
        let report = launch.step_budget(3_000_000).run().unwrap_or_else(|e| panic!("{e}"));
        (report, out.chunks_exact(4).map(|c| u32::from_le_bytes(c.try_into().expect("4 bytes"))).collect())
    }

    /// Right in all modes, whenever asynchronous work happens.
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

    /// Found, whenever asynchronous work happens.
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

const LOAD: &str = "@%p1 mbarrier.init.shared::cta.b64 [%r6], 1;
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
    // What lies outside of the tensor is zero; the bytes come all the same.
    let out = case(LOAD).with("mov.u32 %r8, 2", "mov.u32 %r8, -1").silent();
    assert_eq!(out[..64], [vec![0; 32], (0..32).collect()].concat());
    let out = case(LOAD).with("mov.u32 %r7, 0", "mov.u32 %r7, 30").silent();
    assert_eq!(out[..5], [94, 95, 0, 0, 0]);
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
    load.with("@%p1 fence.mbarrier_init.release.cluster;", "").finds(BarrierMisuse, "may not be initialised");
    load.with("bar.sync 0;", "").finds(BarrierMisuse, "");
    load.with("@%p1 mbarrier.init.shared::cta.b64 [%r6], 1;", "").finds(BarrierMisuse, "no barrier is initialised");
    load.with("@!%p2 bra WAIT;", "").with("mbarrier.try_wait", "//").finds(Race, "cp.async.bulk.tensor");
    // The phase before the first counts as over: data that has not come, or a second phase that never ends.
    let early = load.with("[%r6], 0;", "[%r6], 1;");
    assert!((0..3).all(|seed| !early.run(Modes::ALL, seed).0.is_clean()));
    load.with("_, [%r6], 512", "_, [%r6], 1024").finds(Deadlock, "512 B are to come");
    load.with("_, [%r6], 512", "_, [%r6], 256").finds(Deadlock, "256 B more than expected");
    load.with("mbarrier.init.shared::cta.b64 [%r6], 1;", "mbarrier.init.shared::cta.b64 [%r6], 2;")
        .finds(Deadlock, "1 of 2 have arrived");
    load.with("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r6], 512;", "").finds(Deadlock, "more than expected");
    // One arrival more: in this phase, or, where the bytes came before it, in the next.
    let twice = load.with("WAIT:", "mbarrier.arrive.shared::cta.b64 _, [%r6];\nWAIT:");
    let found = twice.run(Modes::PLAIN, 0).0.findings[0].to_string();
    assert!(found.contains("1 arrive where 0 of 1"), "{found}");
    assert!((0..3).all(|seed| !twice.run(Modes::ALL, seed).0.is_clean()));
    // Bytes that nobody waits for.
    let early = load.with("WAIT:\nmbarrier.try_wait", "WAIT:\nret;\nmbarrier.try_wait");
    early.finds(BarrierMisuse, "");
    load.with("2d", "1d").with("{%r7, %r8}", "{%r7}").finds(TensorMap, "1 coordinates");
    load.with("[%d6, {", "[%d6+64, {").finds(TensorMap, "no tensor map");
    load.with("bytes [%r4]", "bytes [%r4+64]").finds(TensorMap, "multiple of 128");
    load.with("bytes [%r4]", "bytes [%r4+48896]").finds(FindingKind::OutOfBounds, "512 B are copied");
    // Two copies to one place.
    let copy = LOAD.lines().find(|l| l.starts_with("cp.async")).expect("a copy");
    load.with("], 512;", "], 1024;").with(copy, &format!("{copy}\n{copy}")).finds(Race, "");
    // What threads wrote, and the copy writes, without a fence; then read by a thread while it comes.
    load.with("bar.sync 0;", "st.shared.u32 [%r5], %r1;\nbar.sync 0;").finds(Race, "fence.proxy.async");
    load.with("bar.sync 0;", "st.shared.u32 [%r5], %r1;\nfence.proxy.async.shared::cta;\nbar.sync 0;").silent();
}

#[test]
fn swizzled_boxes_lie_as_their_maps_say() {
    for (swizzle, inner) in [(MapSwizzle::B32, 8), (MapSwizzle::B64, 16), (MapSwizzle::B128, 32)] {
        let mut of = case(LOAD).with("], 512;", &format!("], {};", inner * 16));
        of.spec = TensorMapSpec::matrix(0, DType::I32, [32, 8], 128, [inner, 4], swizzle);
        let out = of.with("mov.u32 %r8, 2", "mov.u32 %r8, 0").with("ld.shared", "@%p3 ld.shared");
        let out = out
            .with("@%p3 ld.shared", &format!("setp.lt.u32 %p3, %r1, {};\nmov.u32 %r9, 0;\n@%p3 ld.shared", inner * 4))
            .silent();
        for at in 0..(inner as usize * 4).min(64) {
            let byte = at * 4;
            let from = byte ^ ((byte >> 7 & ((1 << swizzle.bits()) - 1)) << 4);
            let (row, column) = (from / 4 / inner as usize, from / 4 % inner as usize);
            assert_eq!(out[at] as usize, row * 32 + column, "{swizzle} {at}");
        }
    }
}

const STORE: &str = "st.shared.u32 [%r5], %r1;
fence.proxy.async.shared::cta;
bar.sync 0;
mov.u32 %r7, 0;
mov.u32 %r8, 6;
@!%p1 bra OUT;
cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%d6, {%r7, %r8}], [%r4];
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
OUT:";

fn store(body: &str) -> Case {
    Case {
        stores: true,
        out: 1024,
        spec: TensorMapSpec::matrix(0, DType::I32, [32, 8], 128, [32, 2], MapSwizzle::B128),
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

/// Each block of a cluster writes to the other's shared memory.
const PEERS: &str = "mov.u32 %r7, %cluster_ctarank;
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

fn peers(body: &str) -> Case {
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
const MULTICAST: &str = "mov.u32 %r7, %cluster_ctarank;
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
        .finds(FindingKind::BarrierMisuse, "may not be initialised");
    case.with("mov.u16 %h1, 3", "mov.u16 %h1, 5").finds(FindingKind::OutOfBounds, "mask");
    case.with("mov.u16 %h1, 3", "mov.u16 %h1, 1").finds(FindingKind::Deadlock, "512 B are to come");
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
    assert!(found.detail.contains("have been given back"), "{}", found.detail);
    case.with("dec.sync.aligned.u32 40", "dec.sync.aligned.u32 200").finds(FindingKind::Asynchrony, "168 registers");
}

/// The warps of one warpgroup fill two matrices, and multiply them.
fn product(n: u32, fill: &str) -> Case {
    let d: Vec<String> = (0..n / 2).map(|i| format!("%f{i}")).collect();
    let zero: String = (0..n / 2).map(|i| format!("mov.f32 %f{i}, 0f00000000;\n")).collect();
    let out: String = (0..n / 2).map(|i| format!("st.global.f32 [%d4+{}], %f{i};\n", i * 512)).collect();
    let body = format!(
        "{fill}
fence.proxy.async.shared::cta;
bar.sync 0;
{zero}cvt.u64.u32 %d7, %r4;
shr.u64 %d7, %d7, 4;
or.b64 %d7, %d7, 0x0000002000080000;
add.u64 %d8, %d7, 128;
setp.ne.u32 %p4, %r4, 0;
wgmma.fence.sync.aligned;
wgmma.mma_async.sync.aligned.m64n{n}k16.f32.f16.f16 {{{}}}, %d7, %d8, %p4, 1, 1, 0, 0;
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
{out}",
        d.join(", ")
    );
    Case { threads: 128, out: n as usize * 256, ..case(&body) }
}

/// Ones everywhere: 6144 bytes by 128 threads.
fn ones() -> String {
    (0..12).map(|i| format!("st.shared.u32 [%r5+{}], 0x3c003c00;\n", i * 512)).collect()
}

#[test]
fn warpgroups_multiply_and_their_waits_are_needed() {
    use FindingKind::{Asynchrony, Race};
    let case = product(8, &ones());
    assert!(case.silent().iter().all(|v| f32::from_bits(*v) == 16.0));
    case.with("fence.proxy.async.shared::cta;", "").finds(Race, "fence.proxy.async");
    case.with("bar.sync 0;", "").finds(Race, "");
    case.with("wgmma.fence.sync.aligned;", "").finds(Asynchrony, "wgmma.fence");
    case.with("wgmma.commit_group.sync.aligned;", "").finds(Asynchrony, "wait_group");
    case.with("wgmma.wait_group.sync.aligned 0;", "").finds(Asynchrony, "wait_group");
    case.with("wgmma.wait_group.sync.aligned 0;", "wgmma.wait_group.sync.aligned 1;").finds(Asynchrony, "is touched");
    let early =
        case.with("wgmma.wait_group.sync.aligned 0;", "st.shared.u32 [%r5], 0;\nwgmma.wait_group.sync.aligned 0;");
    early.finds(Race, "");
    case.with(
        "wgmma.wait_group.sync.aligned 0;",
        "wgmma.wait_group.sync.aligned 0;\nbar.sync 0;\nst.shared.u32 [%r5], 0;",
    )
    .silent();
    case.with("add.u64 %d8, %d7, 128", "add.u64 %d8, %d7, 3060").finds(FindingKind::OutOfBounds, "matrix descriptor");
    let (report, _) =
        case.with("st.shared.u32 [%r5+0], 0x3c003c00;\n", "").run(Modes { bounds: false, init: true, races: false }, 0);
    assert_eq!(report.findings.first().map(|f| f.kind), Some(FindingKind::Uninitialized));
}

/// `CUTEMPLATE_SPEED=1 cargo test --release --test exec_ptx -- --nocapture speed`
#[test]
fn speed_of_warpgroups() {
    if !crate::bench::is_asked_for() {
        return;
    }
    for (shape, types, bytes) in [
        ("k16", "f32.f16.f16", ", 1, 1, 0, 0"),
        ("k16", "f32.bf16.bf16", ", 1, 1, 0, 0"),
        ("k8", "f32.tf32.tf32", ", 1, 1"),
        ("k32", "f32.e4m3.e4m3", ", 1, 1"),
    ] {
        let case = product(128, &ones()).with("0x0000002000080000", "0x0000001000080000");
        let first = case.body.find("wgmma.fence").expect("a fence");
        let last = case.body.find("wgmma.wait_group").expect("a wait");
        let text = &case.body[first..last];
        let text =
            text.replace("k16.f32.f16.f16", &format!("{shape}.{types}")).replace(", 1, 1, 0, 0;", &format!("{bytes};"));
        let text = format!(
            "mov.u32 %r30, 0;\nLOOP:\n{text}wgmma.wait_group.sync.aligned 0;\nadd.u32 %r30, %r30, 1;\nsetp.lt.u32 %p5, %r30, 2000;\n@%p5 bra LOOP;\n"
        );
        let case = Case { body: format!("{}{text}{}", &case.body[..first], &case.body[last..]), ..case };
        let k: f64 = shape[1..].parse().expect("a number");
        for exact in [false, true] {
            let start = std::time::Instant::now();
            let module = Module::parse(case.text()).expect("PTX");
            let mut out = vec![0_u8; case.out];
            let launch =
                module.launch("k").expect("an entry").block(&[128]).output("out", &mut out).input("in", &case.input);
            let cores = if exact { TensorCores::Hopper } else { TensorCores::Fast };
            let launch = launch.arg_tensor_map(1, 0, case.spec).tensor_cores(cores).workers(1);
            assert!(launch.run().expect("it runs").is_clean());
            let seconds = start.elapsed().as_secs_f64();
            println!("wgmma {types} {cores:?}: {:.1} GFLOP/s", 2.0 * 64.0 * 128.0 * k * 2000.0 / seconds / 1e9);
        }
    }
}
