//! Planted defects. Each is found, with its place. A correct twin of each gives no finding.

use ptx_exec::{Buffer, Data, Modes, Module, Tensor};
use ptx_exec::{Finding, FindingKind, Report};

fn target(finding: &Finding) -> String {
    finding.target.as_ref().map_or_else(String::new, ToString::to_string)
}

/// A module of one entry `k(out, in)` with shared memory `s` of 1024 bytes.
pub(crate) fn module(body: &str) -> Module {
    Module::parse(text(body)).expect("PTX")
}

pub(crate) fn text(body: &str) -> String {
    format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n.file 1 \"kernel.cu\"\n.visible .entry k(.param .u64 out, .param .u64 in)\n{{\n\
         .reg .pred %p<9>;\n.reg .b32 %r<20>;\n.reg .b64 %d<20>;\n.shared .align 16 .b8 s[1024];\n.local .align 8 .b8 l[16];\n\
         ld.param.u64 %d1, [out];\nld.param.u64 %d2, [in];\nmov.u32 %r1, %tid.x;\nmov.u32 %r2, %ctaid.x;\n\
         mul.wide.u32 %d3, %r1, 4;\nadd.u64 %d4, %d1, %d3;\nadd.u64 %d5, %d2, %d3;\nshl.b32 %r3, %r1, 2;\nmov.u32 %r4, s;\n\
         add.u32 %r5, %r4, %r3;\n.loc 1 7 0\n{body}\nret;\n}}\n"
    )
}

/// Runs a launch with 1024 bytes of output and of input.
pub(crate) fn launch(body: &str, blocks: u32, threads: u32, modes: Modes) -> (Report, Vec<u32>) {
    run(&module(body), blocks, threads, modes)
}

pub(crate) fn run(module: &Module, blocks: u32, threads: u32, modes: Modes) -> (Report, Vec<u32>) {
    let mut out = vec![0xff_u8; 1024];
    let input: Vec<u8> = (0..256_u32).flat_map(u32::to_le_bytes).collect();
    let mut buffer = Buffer::new("out", Data::Write(&mut out));
    buffer.written = false;
    let launch = module.launch("k").expect("an entry").grid(&[blocks]).block(&[threads]).arg_buffer(buffer);
    let report = launch.input("in", &input).modes(modes).step_budget(3_000_000).run().expect("it runs");
    (report, out.chunks_exact(4).map(|c| u32::from_le_bytes(c.try_into().expect("4 bytes"))).collect())
}

const INIT: Modes = Modes { bounds: false, init: true, races: false };
const RACES: Modes = Modes { bounds: false, init: false, races: true };

#[track_caller]
fn finds(body: &str, blocks: u32, threads: u32, modes: Modes, kind: FindingKind) -> Finding {
    let (report, _) = launch(body, blocks, threads, modes);
    let found = report.findings.iter().find(|f| f.kind == kind);
    let found = found.unwrap_or_else(|| panic!("no {kind:?} among {:?}", report.findings)).clone();
    println!("{found}\n");
    if let Some(site) = &found.site {
        assert_eq!(site.source.first().map(|s| (s.file.as_str(), s.line)), Some(("kernel.cu", 7)));
        assert!(site.ptx_line > 20);
    }
    found
}

#[track_caller]
fn silent(body: &str, blocks: u32, threads: u32) -> Vec<u32> {
    let (report, out) = launch(body, blocks, threads, Modes::ALL);
    assert!(report.is_clean(), "{}", report.findings[0]);
    out
}

#[test]
fn stores_of_one_value_to_one_place_are_no_race() {
    // Two warps in one text, as compilers lay them out, and then each by its number.
    let same =
        "mov.u32 %r6, 7;\nst.shared.u32 [%r4], %r6;\nbar.sync 0;\nld.shared.u32 %r7, [%r4];\nst.global.u32 [%d4], %r7;";
    let (report, out) = launch(same, 1, 64, Modes::ALL);
    assert!(report.is_clean() && out[63] == 7, "{report}");
    finds(&same.replace("mov.u32 %r6, 7", "shr.u32 %r6, %r1, 5"), 1, 64, RACES, FindingKind::Race);
    // A reader in between may see the old value.
    finds(&same.replace("bar.sync 0;", ""), 1, 64, RACES, FindingKind::Race);
}

#[test]
fn strays_are_found_in_every_space() {
    let global = finds(
        "ld.global.u32 %r6, [%d5+1024];\nst.global.u32 [%d4], %r6;",
        1,
        32,
        Modes::PLAIN,
        FindingKind::OutOfBounds,
    );
    assert_eq!(target(&global), "byte 1024 of in[1024 B]");
    assert_eq!((global.who.expect("a warp").lanes, global.count), (u32::MAX, 32));
    finds("st.global.u32 [%d4+1000], %r1;", 1, 32, Modes::PLAIN, FindingKind::OutOfBounds);
    let shared = finds("st.shared.u32 [%r5+1024], %r1;", 1, 32, Modes::PLAIN, FindingKind::OutOfBounds);
    assert_eq!(target(&shared), "byte 1024 of shared s[1024 B]");
    finds("mov.u64 %d6, l;\nst.local.u32 [%d6+16], %r1;", 1, 32, Modes::PLAIN, FindingKind::OutOfBounds);
    finds("mov.u64 %d6, 0;\nld.u32 %r6, [%d6];", 1, 1, Modes::PLAIN, FindingKind::OutOfBounds);
    finds(
        "cp.async.ca.shared.global [%r5], [%d5+1024], 4;\ncp.async.wait_all;",
        1,
        32,
        Modes::PLAIN,
        FindingKind::OutOfBounds,
    );
    silent(
        "st.shared.u32 [%r5+896], %r1;\nmov.u64 %d6, l;\nst.local.u32 [%d6+12], %r1;\nld.local.u32 %r6, [%d6+12];\nst.global.u32 [%d4], %r6;",
        1,
        32,
    );
}

/// Each of several arrays ends at its declared end; the next array does not follow directly.
#[test]
fn an_array_of_a_thread_ends_ahead_of_the_next() {
    let declared =
        ".local .align 4 .b8 m[12];\n.local .align 4 .b8 n[64];\nmov.u64 %d6, m;\nmov.u64 %d7, n;\nmov.u64 %d8, l;\n";
    for (stray, at) in [
        ("st.local.u32 [%d6+12], %r1;", "byte 12 of local m[12 B]"),
        ("st.local.u64 [%d6+8], %d1;", "byte 8 of local m[12 B]"),
        ("ld.local.u32 %r6, [%d6-4];", "byte -4 of local m[12 B]"),
        ("st.local.u32 [%d8+16], %r1;", "byte 16 of local l[16 B]"),
        ("cvta.local.u64 %d9, %d6;\nst.u32 [%d9+16], %r1;", "byte 16 of local m[12 B]"),
        ("add.u64 %d9, %d6, %d3;\nst.local.u32 [%d9], %r1;", "byte 12 of local m[12 B]"),
        ("st.local.u32 [%d7+64], %r1;", "byte 64 of local n[64 B]"),
    ] {
        let found = finds(&format!("{declared}{stray}"), 1, 32, Modes::PLAIN, FindingKind::OutOfBounds);
        assert_eq!(target(&found), at, "{stray}");
    }
    silent(
        &format!(
            "{declared}st.local.u32 [%d6+8], %r1;\nst.local.u32 [%d7], %r1;\nst.local.u32 [%d7+60], %r1;\nst.local.u32 [%d8+12], %r1;\n\
             cvta.local.u64 %d9, %d7;\nld.u32 %r6, [%d9+60];\nst.global.u32 [%d4], %r6;"
        ),
        1,
        32,
    );
}

#[test]
fn misaligned_accesses_are_found() {
    finds("ld.global.u32 %r6, [%d5+2];", 1, 32, Modes::PLAIN, FindingKind::Misaligned);
    finds("ld.global.v2.u32 {%r6,%r7}, [%d5];", 1, 32, Modes::PLAIN, FindingKind::Misaligned);
    finds("st.shared.u64 [%r5], %d1;", 1, 32, Modes::PLAIN, FindingKind::Misaligned);
    finds(
        "cp.async.cg.shared.global [%r5], [%d5], 16;\ncp.async.wait_all;",
        1,
        32,
        Modes::PLAIN,
        FindingKind::Misaligned,
    );
}

#[test]
fn inputs_are_not_written() {
    finds("st.global.u32 [%d5], %r1;", 1, 32, Modes::PLAIN, FindingKind::WriteToInput);
    finds("atom.global.add.u32 %r6, [%d5], 1;", 1, 32, Modes::PLAIN, FindingKind::WriteToInput);
}

#[test]
fn what_nobody_wrote_is_found_where_it_decides() {
    let of = |body: &str| finds(body, 1, 32, INIT, FindingKind::Uninitialized);
    of("ld.shared.u32 %r6, [%r5];\nst.global.u32 [%d4], %r6;");
    of("st.global.u32 [%d4], %r9;");
    of("ld.shared.u32 %r6, [%r5];\nsetp.eq.u32 %p1, %r6, 0;\n@%p1 bra DONE;\nst.global.u32 [%d4], %r1;\nDONE:");
    of(
        "ld.shared.u32 %r6, [%r5];\nand.b32 %r6, %r6, 124;\ncvt.u64.u32 %d6, %r6;\nadd.u64 %d6, %d2, %d6;\nld.global.u32 %r7, [%d6];",
    );
    of("ld.global.u32 %r6, [%d4];\nadd.u32 %r6, %r6, 1;\nst.global.u32 [%d4], %r6;");
    of("mov.u64 %d6, l;\nld.local.u32 %r6, [%d6];\nst.global.u32 [%d4], %r6;");
    of(
        "cp.async.ca.shared.global [%r5], [%d4], 4;\ncp.async.wait_all;\nld.shared.u32 %r6, [%r5];\nst.global.u32 [%d4+128], %r6;",
    );
}

#[test]
fn what_nobody_wrote_is_no_finding_where_it_is_dropped() {
    silent("ld.shared.u32 %r6, [%r5];\nadd.u32 %r7, %r6, 1;\nst.global.u32 [%d4], %r1;", 1, 32);
    // The half that was written is kept, the other is masked off.
    silent(
        "st.shared.u16 [%r5], %r1;\nld.shared.u32 %r6, [%r5];\nand.b32 %r6, %r6, 65535;\nst.global.u32 [%d4], %r6;",
        1,
        32,
    );
    silent(
        "ld.shared.u32 %r6, [%r5];\nsetp.lt.u32 %p1, %r1, 99;\nselp.b32 %r7, %r1, %r6, %p1;\nst.global.u32 [%d4], %r7;",
        1,
        32,
    );
    silent(
        "st.shared.v2.u16 [%r5], {%r1, %r1};\nld.shared.u32 %r6, [%r5];\nprmt.b32 %r6, %r6, 0, 0x1010;\nst.global.u32 [%d4], %r6;",
        1,
        32,
    );
}

pub(crate) const EXCHANGE: &str =
    "xor.b32 %r6, %r5, 128;\nst.shared.u32 [%r5], %r1;\n{}\nld.shared.u32 %r7, [%r6];\nst.global.u32 [%d4], %r7;";

#[test]
fn races_in_a_block_are_found() {
    let found = finds(&EXCHANGE.replace("{}", ""), 1, 64, RACES, FindingKind::Race);
    let other = found.other.expect("the other access");
    assert_ne!(other.who.warp, found.who.expect("a warp").warp);
    silent(&EXCHANGE.replace("{}", "bar.sync 0;"), 1, 64);
    silent(&EXCHANGE.replace("{}", "barrier.sync.aligned 3, 64;"), 1, 64);
    // A barrier that is one too early does not help.
    let late = "bar.sync 0;\nst.shared.u32 [%r5], %r1;\nxor.b32 %r6, %r5, 128;\nld.shared.u32 %r7, [%r6];";
    finds(late, 1, 64, RACES, FindingKind::Race);
    // Read, then overwritten by another warp.
    let after = format!("{}\nst.shared.u32 [%r6], %r7;", EXCHANGE.replace("{}", "bar.sync 0;"));
    silent(&after, 1, 64);
    let after = format!("{}\nst.shared.u32 [%r5], %r7;", EXCHANGE.replace("{}", "bar.sync 0;"));
    finds(&after, 1, 64, RACES, FindingKind::Race);
}

#[test]
fn races_in_a_warp_are_found() {
    let body = |sync: &str| {
        format!(
            "xor.b32 %r6, %r5, 4;\nst.shared.u32 [%r5], %r1;\n{sync}\nld.shared.u32 %r7, [%r6];\nst.global.u32 [%d4], %r7;"
        )
    };
    finds(&body(""), 1, 32, RACES, FindingKind::Race);
    let out = silent(&body("bar.warp.sync -1;"), 1, 32);
    assert_eq!(out[..4], [1, 0, 3, 2]);
    // Several lanes write one place.
    finds("st.shared.u32 [%r4], %r1;", 1, 32, RACES, FindingKind::Race);
    silent("st.shared.u32 [%r4], 5;", 1, 32);
}

#[test]
fn races_between_blocks_are_found() {
    finds("st.global.u32 [%d4], %r2;", 2, 32, RACES, FindingKind::Race);
    finds("red.global.add.u32 [%d4], 1;\nst.global.u32 [%d4], %r2;", 2, 32, RACES, FindingKind::Race);
    silent("st.global.u32 [%d4], 0;", 1, 32);
}

/// Block 0 writes a number and sets a flag; block 1 waits for the flag.
pub(crate) fn handover(publish: &str, look: &str) -> String {
    format!(
        "setp.ne.u32 %p1, %r2, 0;\n@%p1 bra TAKE;\nst.global.u32 [%d1], 42;\n{publish}\nbra DONE;\n\
         TAKE:\n{look}\nsetp.eq.u32 %p2, %r6, 0;\n@%p2 bra TAKE;\nld.global.u32 %r7, [%d1];\nst.global.u32 [%d1+8], %r7;\nDONE:"
    )
}

#[test]
fn blocks_that_wait_for_each_other_end_and_are_ordered() {
    let run = |publish: &str, look: &str| {
        let module = module(&handover(publish, look));
        let mut out = vec![0_u8; 1024];
        let launch = module
            .launch("k")
            .expect("an entry")
            .grid(&[2])
            .block(&[1])
            .output("out", &mut out)
            .input("in", &[0; 1024]);
        let report = launch.modes(Modes::ALL).step_budget(3_000_000).run().expect("it runs");
        (report, out[8])
    };
    let (release, acquire) = ("st.release.gpu.global.u32 [%d1+4], 1;", "ld.acquire.gpu.global.u32 %r6, [%d1+4];");
    for (publish, look) in [
        (release, acquire),
        ("membar.gl;\nst.volatile.global.u32 [%d1+4], 1;", "ld.volatile.global.u32 %r6, [%d1+4];\nmembar.gl;"),
        ("fence.acq_rel.gpu;\nred.relaxed.gpu.global.add.u32 [%d1+4], 1;", acquire),
    ] {
        let (report, result) = run(publish, look);
        assert!(report.is_clean(), "{publish}: {}", report.findings[0]);
        assert_eq!(result, 42);
    }
    for (publish, look) in [
        ("st.relaxed.gpu.global.u32 [%d1+4], 1;", acquire),
        (release, "ld.relaxed.gpu.global.u32 %r6, [%d1+4];"),
        ("st.release.cta.global.u32 [%d1+4], 1;", acquire),
    ] {
        let (report, _) = run(publish, look);
        assert!(report.findings.iter().any(|f| f.kind == FindingKind::Race), "{publish} {look}");
    }
}

pub(crate) const COPY: &str = "cp.async.ca.shared.global [%r5], [%d5], 4;\nCOMMIT\nWAIT\nbar.sync 0;\nxor.b32 %r6, %r5, 128;\nld.shared.u32 %r7, [%r6];\nst.global.u32 [%d4], %r7;";

#[test]
fn copies_that_nobody_waited_for_are_found() {
    let body = |commit: &str, wait: &str| COPY.replace("COMMIT", commit).replace("WAIT", wait);
    let (commit, wait) = ("cp.async.commit_group;", "cp.async.wait_group 0;");
    let out = silent(&body(commit, wait), 1, 64);
    assert_eq!(out[0], 32);
    silent(&body("", "cp.async.wait_all;"), 1, 64);
    for (commit, wait) in [(commit, ""), ("", wait), (commit, "cp.async.wait_group 1;")] {
        let found = finds(&body(commit, wait), 1, 64, RACES, FindingKind::Race);
        assert!(found.other.expect("the copy").in_flight);
    }
    // Overwritten while others still read.
    let twice = format!("{}\ncp.async.ca.shared.global [%r5], [%d5], 4;\ncp.async.wait_all;", body(commit, wait));
    finds(&twice, 1, 64, RACES, FindingKind::Race);
    // The opposite: a wait, but no barrier.
    finds(&body(commit, wait).replace("bar.sync 0;", ""), 1, 64, RACES, FindingKind::Race);
}

#[test]
fn barriers_that_part_a_warp_are_found() {
    finds("setp.lt.u32 %p1, %r1, 16;\n@%p1 bar.sync 0;", 1, 32, Modes::PLAIN, FindingKind::BarrierMisuse);
    finds("bar.sync 1, 33;", 1, 64, Modes::PLAIN, FindingKind::BarrierMisuse);
    finds("bar.sync 16;", 1, 64, Modes::PLAIN, FindingKind::BarrierMisuse);
    silent("bar.sync 1, 64;\nbar.arrive 2, 64;", 1, 64);
    // Each half has a barrier of its own.
    let halves = "setp.lt.u32 %p1, %r1, 16;\n@%p1 bra SOME;\nbar.sync 0;\nbra DONE;\nSOME:\nbar.sync 0;\nDONE:";
    finds(halves, 1, 32, Modes::PLAIN, FindingKind::BarrierMisuse);
    // The text of half a warp comes after the barrier that it then reaches, as compilers lay out rare paths.
    let rare = "setp.lt.u32 %p1, %r1, 16;\nmov.u32 %r6, 1;\n@%p1 bra RARE;\nBACK:\nbar.sync 0;\nst.global.u32 [%d4], %r6;\nbra DONE;\n\
                RARE:\nmov.u32 %r6, 2;\nbra BACK;\nDONE:";
    let out = silent(rare, 1, 64);
    assert_eq!((out[0], out[15], out[16], out[63]), (2, 2, 1, 1));
}

#[test]
fn threads_that_wait_forever_are_found() {
    let found = finds("setp.lt.u32 %p1, %r1, 32;\n@%p1 bar.sync 1, 64;", 1, 64, Modes::PLAIN, FindingKind::Deadlock);
    assert!(found.detail.contains("warp 0") && found.detail.contains("32 of 64 threads"), "{}", found.detail);
    let found = finds(
        "setp.lt.u32 %p1, %r1, 16;\n@%p1 bra SOME;\nbar.sync 0;\nSOME:\nshfl.sync.bfly.b32 %r6, %r1, 1, 31, -1;\n@%p1 bar.sync 0;",
        1,
        32,
        Modes::PLAIN,
        FindingKind::BarrierMisuse,
    );
    let _ = found;
    // A barrier does not wait for lanes that have exited.
    silent("setp.ge.u32 %p1, %r1, 32;\n@%p1 ret;\nbar.sync 0;", 1, 64);
    let found = finds("LOOP:\nbra LOOP;", 1, 32, Modes::PLAIN, FindingKind::Timeout);
    assert!(found.detail.contains("is at"), "{}", found.detail);
}

#[test]
fn lanes_wait_for_the_lanes_that_they_name() {
    // Both halves reach the same shuffle, one of them later: they exchange values.
    let out = silent(
        "setp.lt.u32 %p1, %r1, 16;\nmov.u32 %r6, 1;\n@%p1 bra SOME;\nmov.u32 %r6, 2;\nSOME:\nshfl.sync.bfly.b32 %r7, %r6, 16, 31, -1;\nst.global.u32 [%d4], %r7;",
        1,
        32,
    );
    assert_eq!((out[0], out[31]), (2, 1));
    // A lock within a warp: lanes that spin do not starve the one that holds it.
    silent("mov.u32 %r6, 0;", 1, 32);
}

#[test]
fn a_kernel_may_stop_itself() {
    finds("setp.eq.u32 %p1, %r1, 3;\n@%p1 trap;", 1, 32, Modes::PLAIN, FindingKind::Trap);
}

#[test]
fn gaps_of_tensors_are_out_of_bounds() {
    let module = module("st.global.u32 [%d4], %r1;");
    let run = |bounds: bool| {
        let mut out = vec![0_u8; 1024];
        let mut buffer = Buffer::new("out", Data::Write(&mut out));
        // Every other element of 4 bytes.
        buffer.tensors = vec![tensor(0, 4, &[128], &[2])];
        let launch = module.launch("k").expect("an entry").block(&[32]).arg_buffer(buffer).input("in", &[0; 1024]);
        launch.modes(Modes { bounds, ..Modes::PLAIN }).run().expect("it runs").findings
    };
    assert!(run(false).is_empty());
    let found = run(true);
    assert_eq!((found[0].kind, found[0].count), (FindingKind::OutOfBounds, 16));
}

fn tensor(offset: u64, item: u64, shape: &[u64], stride: &[i64]) -> Tensor {
    Tensor { name: "t".to_owned(), offset, item, shape: shape.to_vec(), stride: stride.to_vec() }
}

/// Elements are looked up 64 bytes at a time; an access may reach from one group into the next.
#[test]
fn an_access_across_two_groups_of_elements_is_within_both() {
    let module = module(
        "add.u64 %d6, %d1, 4;\nmul.wide.u32 %d7, %r1, 8;\nadd.u64 %d6, %d6, %d7;\nst.global.v2.u32 [%d6], {%r1, %r1};",
    );
    let run = |tensors: Vec<Tensor>| {
        let mut out = vec![0_u8; 1028];
        let mut buffer = Buffer::new("out", Data::Write(&mut out));
        (buffer.align, buffer.offset, buffer.tensors) = (64, 4, tensors);
        let launch = module.launch("k").expect("an entry").block(&[32]).arg_buffer(buffer).input("in", &[0; 1024]);
        launch.modes(Modes { bounds: true, ..Modes::PLAIN }).run().expect("it runs").findings
    };
    // Lane 7 writes bytes 60 to 67: each of them is a gap in turn, then none.
    for gap in 60..68 {
        let found = run(vec![tensor(0, 1, &[gap], &[1]), tensor(gap + 1, 1, &[1028 - gap - 1], &[1])]);
        let [only] = &found[..] else { panic!("gap {gap}: {found:?}") };
        assert_eq!((only.kind, only.count), (FindingKind::OutOfBounds, 1), "{only}");
        assert!(only.to_string().contains("of t = "), "{only}");
    }
    assert!(run(vec![tensor(0, 4, &[15], &[1]), tensor(60, 4, &[242], &[1])]).is_empty());
}

/// The value of a refused load depends on its own block only, not on blocks that ran before on the same host thread.
#[test]
fn a_refused_load_leaves_nothing_of_another_block() {
    // Block 0 loads numbers; the others load outside of everything.
    let body = "mul.wide.u32 %d6, %r2, 268435456;\nadd.u64 %d7, %d2, %d6;\n\
                ld.global.v4.u32 {%r7,%r8,%r9,%r10}, [%d7+32];\nld.global.v4.u32 {%r11,%r12,%r13,%r14}, [%d7+48];\n\
                mul.wide.u32 %d8, %r2, 32;\nadd.u64 %d9, %d1, %d8;\n\
                st.global.v4.u32 [%d9], {%r7,%r8,%r9,%r10};\nst.global.v4.u32 [%d9+16], {%r11,%r12,%r13,%r14};";
    let stored = |seed: u64| {
        let module = module(body);
        let mut out = vec![0xff_u8; 1024];
        let input: Vec<u8> = (0..256_u32).flat_map(u32::to_le_bytes).collect();
        let launch = module.launch("k").expect("an entry").grid(&[6]).output("out", &mut out).input("in", &input);
        let report = launch.workers(1).seed(seed).run().expect("it runs");
        assert!(report.findings.iter().any(|f| f.kind == FindingKind::OutOfBounds), "{report}");
        let words = out.chunks_exact(4).map(|c| u32::from_le_bytes(c.try_into().expect("4 bytes")));
        words.take(48).collect::<Vec<u32>>()
    };
    let first = stored(0);
    assert_eq!(first[..8], [8, 9, 10, 11, 12, 13, 14, 15]);
    assert!(first[8..].iter().all(|word| !(8..16).contains(word)), "{first:?}");
    for block in first.chunks(8).skip(2) {
        assert_eq!(block, &first[8..16]);
    }
    for seed in 1..8 {
        assert_eq!(stored(seed), first, "seed {seed}");
    }
}
