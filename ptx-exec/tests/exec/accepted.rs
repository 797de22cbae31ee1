//! Texts that ptxas accepts run: constant expressions, function pointers, variables of other entries, hints. Malformed texts are
//! refused with their line.

use ptx_exec::FindingKind;
use ptx_exec::{ErrorKind, Modes, Module};

use crate::defects::{launch, run};

const HEAD: &str = ".version 8.6\n.target sm_90a\n.address_size 64\n";

/// An entry `k` with pointers in `%d1` and `%d2`, its thread in `%r1` and the address of its output word in `%d4`.
fn entry(before: &str, body: &str) -> Module {
    let text = format!(
        "{HEAD}{before}\n.visible .entry k(.param .u64 out, .param .u64 in)\n{{\n.reg .pred %p<4>;\n.reg .b16 %h<9>;\n.reg .b32 %r<40>;\n\
         .reg .b64 %d<9>;\nld.param.u64 %d1, [out];\nld.param.u64 %d2, [in];\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %d3, %r1, 4;\n\
         add.s64 %d4, %d1, %d3;\n{body}\nret;\n}}\n"
    );
    Module::parse(text).unwrap_or_else(|e| panic!("{e}"))
}

#[track_caller]
fn silent(module: &Module, threads: u32) -> Vec<u32> {
    let (report, out) = run(module, 1, threads, Modes::ALL);
    assert!(report.is_clean(), "{}", report.findings[0]);
    out
}

/// Values of `mov.u64 %d, EXPRESSION;` and `mov.f64`, assembled by ptxas and stored by an H200.
const EXPRESSIONS: [(&str, u64); 58] = [
    ("1+2*3", 7),
    ("(1<<4)|3", 0x13),
    ("-(-5)", 5),
    ("~0", u64::MAX),
    ("!0", 1),
    ("!5", 0),
    ("7/2", 3),
    ("-7/2", 0xffff_ffff_ffff_fffd),
    ("7 % 4", 3),
    ("-7 % 4", 1),
    ("-1>>1", u64::MAX),
    ("(3<5)?10:20", 10),
    ("1<<40", 1 << 40),
    ("5==5", 1),
    ("5!=5", 0),
    ("5&&0", 0),
    ("5||0", 1),
    ("(.u64)-1>>60", 15),
    ("(.s64)-1>>60", u64::MAX),
    ("-1 < 1", 1),
    ("-1 < 1U", 0),
    ("-1 > 0U", 1),
    ("0xffffffffffffffff >> 63", 1),
    ("9223372036854775808 >> 63", 1),
    ("3-5", 0xffff_ffff_ffff_fffe),
    ("1.5>1.0", 1),
    ("1 ? -2 : 3U", 0xffff_ffff_ffff_fffe),
    ("0xF^3", 12),
    ("6&3", 2),
    ("+5", 5),
    ("WARP_SZ", 32),
    ("-WARP_SZ", 0xffff_ffff_ffff_ffe0),
    ("WARP_SZ*2", 64),
    ("(1U-2)>>63", 1),
    ("(1-2)>>63", u64::MAX),
    ("-1/2U", 0x7fff_ffff_ffff_ffff),
    ("-1 / 2", 0),
    ("-8 / -3", 2),
    ("1<<63>>63", u64::MAX),
    ("1U<<63>>63", 1),
    ("~0>>63", 1),
    ("1.0==1.0", 1),
    ("1 << 64", 1),
    ("1<<65", 2),
    ("10 - 3 - 2", 5),
    ("1+2<<3", 24),
    ("1|2^3&1", 3),
    ("5>3>1", 0),
    ("0?1:0?2:3", 3),
    ("2 && 3", 1),
    ("-0x8000000000000000 / -1", 0),
    ("1.0+2.0", 0x4008_0000_0000_0000),
    ("1.0/3.0", 0x3fd5_5555_5555_5555),
    ("1.5-.5", 0x3ff0_0000_0000_0000),
    ("1e5", 0x40f8_6a00_0000_0000),
    ("1.5e-3", 0x3f58_9374_bc6a_7efa),
    ("-(1.5)", 0xbff8_0000_0000_0000),
    ("0.1+0.2", 0x3fd3_3333_3333_3334),
];

#[test]
fn constant_expressions_have_the_values_that_ptxas_gives_them() {
    for part in EXPRESSIONS.chunks(29) {
        let line = |(i, (text, value)): (usize, &(&str, u64))| {
            let is_float =
                *value >> 48 != 0xffff && text.contains('.') && !text.contains(['>', '=', 's', 'u']) || *text == "1e5";
            let ty = if is_float { "f64" } else { "u64" };
            format!("mov.{ty} %d5, {text};\nst.global.u64 [%d1+4*{i}*2], %d5;\n")
        };
        let body: String = part.iter().enumerate().map(line).collect();
        let out = silent(&entry("", &body), 1);
        for (i, (text, value)) in part.iter().enumerate() {
            let found = u64::from(out[2 * i]) | u64::from(out[2 * i + 1]) << 32;
            assert_eq!(found, *value, "{text}");
        }
    }
    let out = silent(
        &entry(
            ".global .align 4 .u32 table[3] = {1 << 3 | 1, WARP_SZ - 1, 7 % 4};\n.global .f32 half = 1.0 / 2.0;",
            "ld.global.u32 %r2, [table + 4];\nld.global.u32 %r3, [table];\nld.global.b32 %r4, [half];\nadd.u32 %r2, %r2, %r3;\n\
             st.global.u32 [%d4], %r2;\nst.global.u32 [%d4 + (2 + 2)], %r4;",
        ),
        1,
    );
    assert_eq!(out[..2], [9 + 31, 0.5_f32.to_bits()]);
}

const FUNCTIONS: &str = "
.func (.param .b32 r) twice(.param .b32 a)
{ .reg .b32 %r<3>; ld.param.b32 %r1, [a]; add.u32 %r2, %r1, %r1; st.param.b32 [r], %r2; ret; }
.func (.param .b32 r) more(.param .b32 a)
{ .reg .b32 %r<3>; .reg .pred %p; ld.param.b32 %r1, [a]; setp.gt.u32 %p, %r1, 20; @%p add.u32 %r1, %r1, 1000; add.u32 %r2, %r1, 7;
  st.param.b32 [r], %r2; ret; }
.func (.param .b64 r) other(.param .b32 a) { .reg .b64 %d; mov.b64 %d, 5; st.param.b64 [r], %d; ret; }
.global .align 8 .u64 table[3] = {twice, more, other};
.global .align 8 .b8 packed[8] = {0xff(more), 0xff00(more), 0xff0000(more), 0xff000000(more), 0xff00000000(more), 0xff0000000000(more), 0, 0};
";

/// A call of the function whose address `%d5` has, on the thread's number.
const CALL: &str = "p: .callprototype (.param .b32 _) _ (.param .b32 _);\n{\n.param .b32 a; .param .b32 r;\nst.param.b32 [a], %r1;\n\
                    call (r), %d5, (a), p;\nld.param.b32 %r6, [r];\n}\nst.global.u32 [%d4], %r6;";

#[test]
fn lanes_call_the_functions_that_their_pointers_name() {
    let pick = "and.b32 %r2, %r1, 1;\nmul.wide.u32 %d6, %r2, 8;\nmov.u64 %d7, table;\nadd.u64 %d7, %d7, %d6;\nld.global.u64 %d5, [%d7];";
    let out = silent(&entry(FUNCTIONS, &format!("{pick}\n{CALL}")), 32);
    let expected = |t: u32| match t % 2 {
        0 => 2 * t,
        _ if t > 20 => t + 1007,
        _ => t + 7,
    };
    assert_eq!(out[..32], (0..32).map(expected).collect::<Vec<u32>>());
    // The address of a name, the bytes of one, and a list of functions in place of a prototype.
    let listed = CALL.replace("p: .callprototype (.param .b32 _) _ (.param .b32 _)", "p: .calltargets twice, more");
    for (address, call, result) in [
        ("mov.u64 %d5, twice;", CALL, 6),
        ("ld.global.u64 %d5, [packed];", CALL, 10),
        ("mov.u64 %d5, more;", &listed, 10),
    ] {
        assert_eq!(silent(&entry(FUNCTIONS, &format!("{address}\n{call}")), 8)[3], result, "{address}");
    }
}

#[test]
fn a_pointer_that_fits_no_function_is_found() {
    for address in ["mov.u64 %d5, 64;", "mov.u64 %d5, other;"] {
        let (report, _) = run(&entry(FUNCTIONS, &format!("{address}\n{CALL}")), 1, 1, Modes::ALL);
        let finding = report.findings.first().expect("a finding");
        assert_eq!(finding.kind, FindingKind::Trap, "{finding}");
        assert!(finding.to_string().contains("pointer"), "{finding}");
    }
}

#[test]
fn an_entry_has_only_the_shared_variables_that_it_uses() {
    let before = ".shared .align 4 .b8 large[230000];\n.shared .align 4 .b8 small[64];\n.extern .shared .align 16 .b8 dynamic[];\n\
                  .func fills() { .reg .b32 %r; mov.u32 %r, %tid.x; st.shared.u32 [small], %r; ret; }\n\
                  .visible .entry uses(.param .u64 out) { .reg .b32 %r; mov.u32 %r, large; ret; }";
    let module = entry(before, "call fills;\nld.shared.u32 %r2, [small];\nst.global.u32 [%d4], %r2;");
    let of = |name: &str| module.entries().flatten().find(|e| e.name == name).map(|e| (e.shared, e.has_dynamic_smem));
    assert_eq!((of("k"), of("uses")), (Some((64, false)), Some((230_000, false))));
    assert_eq!(silent(&module, 1)[0], 0);
}

#[test]
fn policies_are_hints() {
    let body = "createpolicy.fractional.L2::evict_last.L2::evict_unchanged.b64 %d5, 0.5;\ncreatepolicy.cvt.L2.b64 %d6, 0x10F0000000000000;\n\
                createpolicy.range.global.L2::evict_last.b64 %d7, [%d2], 512, 1024;\nadd.u64 %d8, %d2, %d3;\n\
                ld.global.L1::evict_last.L2::cache_hint.u32 %r2, [%d8], %d5;\natom.global.add.L2::cache_hint.u32 %r3, [%d1+512], 1, %d6;\n\
                st.global.L2::cache_hint.u32 [%d4], %r2, %d7;\nprefetch.global.L2::evict_last [%d8];\n\
                applypriority.global.L2::evict_normal [%d2], 128;";
    let body = format!("st.global.u32 [%d1+512], 0;\nbar.warp.sync -1;\n{body}");
    assert_eq!(silent(&entry("", &body), 1)[0], 0);
}

#[test]
fn what_was_discarded_is_not_read() {
    let body = "st.global.u32 [%d1], 7;\ndiscard.global.L2 [%d1], 128;\nld.global.u32 %r2, [%d1];\nst.global.u32 [%d4+256], %r2;";
    let (report, _) = run(&entry("", body), 1, 1, Modes::ALL);
    assert_eq!(report.findings.first().map(|f| f.kind), Some(FindingKind::Uninitialized), "{:?}", report.findings);
    let again = body.replace("ld.global", "st.global.u32 [%d1], 8;\nld.global");
    assert_eq!(silent(&entry("", &again), 1)[64], 8);
    for (address, kind) in [("%d1+64", FindingKind::Misaligned), ("%d1+1024", FindingKind::OutOfBounds)] {
        let (report, _) = run(&entry("", &format!("discard.global.L2 [{address}], 128;")), 1, 1, Modes::ALL);
        assert_eq!(report.findings.first().map(|f| f.kind), Some(kind), "{address}");
    }
}

const FRAGMENT: &str = "{%r10, %r11, %r12, %r13, %r14, %r15, %r16, %r17}";

#[test]
fn fragments_are_loaded_and_stored_by_whole_warps_inside_of_memory() {
    let load =
        |stride: u32| format!("wmma.load.c.sync.aligned.row.m16n16k16.global.s32 {FRAGMENT}, [%d2], {stride};\n");
    let store = format!("wmma.store.d.sync.aligned.col.m16n16k16.global.s32 [%d1], {FRAGMENT};");
    let out = silent(&entry("", &(load(16) + &store)), 32);
    assert_eq!(out, (0..256_u32).map(|i| i % 16 * 16 + i / 16).collect::<Vec<u32>>());
    let kinds = |body: &str, threads: u32| {
        let (report, _) = run(&entry("", body), 1, threads, Modes::ALL);
        report.findings.iter().map(|f| f.kind).collect::<Vec<FindingKind>>()
    };
    assert!(kinds(&(load(20) + &store), 32).contains(&FindingKind::OutOfBounds));
    let half = "setp.lt.u32 %p1, %r1, 16;\n@%p1 bra HERE;\nbra END;\nHERE:\n";
    let apart = kinds(&format!("{half}{}{store}\nEND:\nbar.warp.sync -1;", load(16)), 32);
    assert!(!apart.is_empty(), "half of a warp loads a fragment");
    // Two warps store different things to one place.
    let two = format!("{}add.u32 %r10, %r10, %r1;\n{store}", load(16));
    assert!(kinds(&two, 64).iter().any(|kind| format!("{kind:?}").contains("Race")), "{:?}", kinds(&two, 64));
}

#[test]
fn malformed_forms_are_refused_with_their_line() {
    let refused = |body: &str| {
        let text = format!(
            "{HEAD}.visible .entry k()\n{{\n.reg .pred %p<4>; .reg .b16 %h<9>; .reg .b32 %r<40>; .reg .b64 %d<9>;\n{body}\nret;\n}}\n"
        );
        match Module::parse(text) {
            Err(e) => e,
            Ok(module) => module.launch("k").err().unwrap_or_else(|| panic!("{body} is accepted")),
        }
    };
    for body in [
        "createpolicy.fractional.L2::evict_often.b64 %d1;",
        "createpolicy.fractional.L2::evict_last.L2::evict_last.b64 %d1;",
        "createpolicy.fractional.L2::evict_last.b64 %r1;",
        "ld.global.L2::cache_hint.u32 %r1, [%d1];",
        "ld.global.u32 %r1, [%d1], %d2;",
        "st.global.L2::cache_hint.u32 [%d1], %r1, %r2;",
        "discard.global.L2 [%d1], 64;",
        "applypriority.global.L2::evict_last [%d1], 128;",
        "prefetch.global.L3 [%d1];",
        "vote.ballot.sync.pred %p1, %p1, -1;",
        "lop3.xor.b32 %r1|%p1, %r1, %r2, %r3, 5, %p1;",
        "lop3.or.b32 %r1, %r1, %r2, %r3, 5, %p1;",
        "set.eq.f16x2.bf16x2 %r1, %r2, %r3;",
        "set.eq.u16.f16x2 %h1, %r2, %r3;",
        "set.lo.u32.s32 %r1, %r2, %r3;",
        "setp.lt.b32 %p1, %r1, %r2;",
        "vadd.u32.u32 %r1, %r2, %r3;",
        "vadd.u32.u32.u32 %r1.b4, %r2, %r3, %r4;",
        "vadd.u32.u32.u32 %r1.b0, %r2, %r3;",
        "vadd.u32.u32.u32.add %r1.b0, %r2, %r3, %r4;",
        "vshl.u32.u32.s32.clamp %r1, %r2, %r3;",
        "vadd4.u32.u32.u32.sat.add %r1, %r2, %r3, %r4;",
        "vadd2.u32.u32.u32 %r1.h01, %r2, %r3, %r4;",
        "vadd2.u32.u32.u32 %r1, %r2.h4, %r3, %r4;",
        "vmad.s32.s32.s32.po %r1, -%r2, %r3, %r4;",
        "cvt.pack.sat.u8.s32 %r1, %r2, %r3;",
        "wmma.load.a.sync.aligned.row.m16n16k8.f16 {%r1, %r2, %r3, %r4}, [%d1];",
        "wmma.load.a.sync.aligned.row.m16n16k16.f16 {%r1, %r2, %r3, %r4}, [%d1];",
        "wmma.load.a.sync.aligned.col.m8n8k32.u4 {%r1}, [%d1];",
        "wmma.mma.sync.aligned.row.col.m8n8k32.s32.u4.s4.s32 {%r1, %r2}, {%r3}, {%r4}, {%r5, %r6};",
        "wmma.mma.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32 {%r1, %r2}, {%r3}, {%r4}, {%r5, %r6};",
        "add.u32 %r1.x, %r2, %r3;",
        "mov.u32 %r1, 1 / 0;",
        "mov.u32 %r1, 1.0 + 1;",
        "mov.u32 %r1, (1;",
        "mov.u32 %r1, 1 +;",
        "mov.u32 %r1, 1 < < 2;",
        "mov.f64 %d1, 1e400;",
        "call (%r1), %d1, (%r2);",
        "call (%r1), %d1, (%r2), nowhere;",
    ] {
        let error = refused(body);
        assert_eq!(error.position.map(|p| p.line), Some(7), "{body}: {error}");
        assert_ne!(error.kind, ErrorKind::Defect, "{body}: {error}");
    }
    // Deep nesting is refused without recursion.
    let deep = format!("mov.u32 %r1, {}1{};", "(".repeat(5000), ")".repeat(5000));
    assert!(refused(&deep).to_string().contains("nested"));
    assert!(refused(&format!("mov.u32 %r1, {}1;", "-".repeat(5000))).to_string().contains("nested"));
}

#[test]
fn a_generic_address_of_ldmatrix_is_one_of_shared_memory() {
    let body = "ldmatrix.sync.aligned.m8n8.x1.b16 {%r2}, [%d2];\nst.global.u32 [%d4], %r2;";
    let (report, _) = run(&entry("", body), 1, 32, Modes::ALL);
    assert_eq!(report.findings.first().map(|f| f.kind), Some(FindingKind::OutOfBounds));
    let (report, _) =
        launch("bar.red.and.pred %p1, 0, 1;\nselp.u32 %r6, 1, 0, %p1;\nst.global.u32 [%d4], %r6;", 1, 32, Modes::ALL);
    assert!(report.is_clean());
}
