//! Operands without a fitting register: discarded results, and arguments of calls. Each runs without a stray write, or is refused with
//! its line.

use ptx_exec::{ErrorKind, Modes, Module};

/// Functions that calls name, and the registers and variables that they pass.
const HEAD: &str = ".version 8.7\n.target sm_90a\n.address_size 64\n\
.extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n\
.extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);\n\
.visible .func (.param .b32 r0) f(.param .b32 a0) { .reg .b32 %x; ld.param.b32 %x, [a0]; st.param.b32 [r0], %x; ret; }\n\
.func (.param .b64 r0) wide(.param .b64 a0) { ret; }\n\
.func (.param .b16 r0) half(.param .b16 a0) { ret; }\n\
.func (.param .align 8 .b8 r0[8]) array(.param .align 8 .b8 a0[8]) { ret; }\n\
.func (.param .b128 r0) quad(.param .b128 a0) { ret; }\n\
.func nothing() { ret; }\n\
.visible .entry k(.param .u64 out)\n{\n.reg .pred %p<9>;\n.reg .b16 %h<9>;\n.reg .b32 %r<9>;\n.reg .b64 %d<9>;\n\
.shared .align 16 .b8 room[1024];\n.local .b32 own;\n.param .b32 ret0;\n.param .b32 arg0;\n.param .b64 arg1;\n\
.param .align 8 .b8 eight[8];\n.param .b8 four[4];\nld.param.u64 %d1, [out];\nmov.u32 %r1, room;\n";

/// The line that the instruction stands in.
fn line() -> u32 {
    HEAD.lines().count() as u32 + 1
}

fn text(instruction: &str) -> String {
    format!("{HEAD}{instruction}\nret;\n}}\n")
}

/// Whether an instruction is refused, and then with its line; else it runs.
fn is_refused(instruction: &str) -> bool {
    let module = Module::parse(text(instruction)).unwrap_or_else(|e| panic!("{instruction}: {e}"));
    let refusal = match module.entries().next().expect("an entry") {
        Ok(_) => None,
        Err((_, error)) => Some(error.clone()),
    };
    if let Some(error) = refusal {
        assert!(matches!(error.kind, ErrorKind::Syntax | ErrorKind::Name), "{instruction}: {error}");
        assert_eq!(error.position.map(|at| at.line), Some(line()), "{instruction}: {error}");
        return true;
    }
    for modes in [Modes::PLAIN, Modes::ALL] {
        let mut out = [0_u8; 4096];
        let launch = module.launch("k").expect("an entry").block(&[128]).output("out", &mut out);
        launch.modes(modes).step_budget(10_000).run().unwrap_or_else(|e| panic!("{instruction}: {e}"));
    }
    false
}

/// Results that ptxas 13.0 allows to discard with `_`.
const DISCARDED: [&str; 25] = [
    "mov.b64 {_, %r1}, %d1;",
    "mov.b64 {%r1, _}, %d1;",
    "mov.b32 {_, %h1}, %r1;",
    "mov.b64 {%h1, _, _, %h2}, %d1;",
    "setp.lt.s32 _, %r1, %r2;",
    "setp.lt.s32 _|%p1, %r1, %r2;",
    "setp.lt.and.s32 %p1|_, %r1, %r2, %p2;",
    "shfl.sync.idx.b32 %r1|_, %r1, %r2, 31, -1;",
    "match.all.sync.b32 _|%p1, %r1, -1;",
    "match.all.sync.b32 %r1|_, %r1, -1;",
    "match.all.sync.b32 _, %r1, -1;",
    "elect.sync _|%p1, -1;",
    "ld.global.v2.u32 {_, %r1}, [%d1];",
    "ld.shared.v4.u32 {_, %r2, %r3, _}, [%r1];",
    "ld.global.v2.u8 {%d2, _}, [%d1];",
    "atom.global.add.u32 _, [%d1], %r1;",
    "atom.shared.cas.b64 _, [%r1], %d2, %d3;",
    "atom.global.v2.f32.add {_, %r2}, [%d1], {%r3, %r4};",
    "atom.global.v2.f32.add _, [%d1], {%r3, %r4};",
    "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {_, %r2}, [%r1];",
    "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {_, %r2, _, %r3}, {%r1, %r2}, {%r3}, {%r4, %r5, %r6, %r7};",
    "mbarrier.init.shared.b64 [%r1], 256; mbarrier.arrive.shared.b64 _, [%r1];",
    "mbarrier.init.shared.b64 [%r1], 256; mbarrier.arrive.expect_tx.shared.b64 _, [%r1], 0;",
    "mbarrier.init.shared.b64 [%r1], 256; mbarrier.arrive_drop.shared.b64 _, [%r1];",
    "lop3.b32 _, %r1, %r2, %r3, 0x96;",
];

/// Results that it does not allow to discard.
const KEPT: [&str; 58] = [
    "add.s32 _, %r1, %r1;",
    "add.f32 _, %r1, %r1;",
    "add.s64 _, %d1, %d1;",
    "mul.wide.u32 _, %r1, %r2;",
    "mov.u32 _, %r1;",
    "mov.b64 _, {%r1, %r2};",
    "mov.b64 {_, _}, %d1;",
    "mov.pred _, %p1;",
    "selp.b32 _, %r1, %r1, %p1;",
    "slct.b32.s32 _, %r1, %r2, %r3;",
    "setp.lt.s32 _|_, %r1, %r2;",
    "set.lt.u32.s32 _, %r1, %r2;",
    "cvta.to.global.u64 _, %d1;",
    "cvta.shared.u64 _, %d1;",
    "cvta.param.u64 _, %d1;",
    "activemask.b32 _;",
    "vote.sync.ballot.b32 _, %p1, -1;",
    "vote.sync.all.pred _, %p1, -1;",
    "movmatrix.sync.aligned.m8n8.trans.b16 _, %r1;",
    "mapa.u64 _, %d1, %r1;",
    "mapa.shared::cluster.u32 _, %r1, %r2;",
    "getctarank.u64 _, %d1;",
    "shfl.sync.idx.b32 _, %r1, %r2, 31, -1;",
    "shfl.sync.idx.b32 _|%p1, %r1, %r2, 31, -1;",
    "match.any.sync.b32 _, %r1, -1;",
    "elect.sync %r1|_, -1;",
    "elect.sync _|_, -1;",
    "redux.sync.add.s32 _, %r1, -1;",
    "ld.global.u32 _, [%d1];",
    "ld.global.v2.u32 {_, _}, [%d1];",
    "ld.param.u64 _, [out];",
    "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {_}, [%r1];",
    "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {_, _}, [%r1];",
    "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {_, _, _, _}, {%r1, %r2}, {%r3}, {%r4, %r5, %r6, %r7};",
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {_, %r1, %r2, %r3}, %d1, %d2, 1, 1, 1, 0, 0;",
    "atom.global.v2.f32.add {_, _}, [%d1], {%r3, %r4};",
    "mbarrier.test_wait.shared.b64 _, [%r1], %d2;",
    "mbarrier.test_wait.shared.b64 [%r1], %d2;",
    "mbarrier.try_wait.parity.shared.b64 _, [%r1], 0;",
    "mbarrier.pending_count.b64 _, %d1;",
    "bar.red.popc.u32 _, 0, %p1;",
    "barrier.red.and.pred _, 0, %p1;",
    "isspacep.shared _, %d1;",
    "cvt.u32.u16 _, %h1;",
    "cvt.u64.u32 _, %r1;",
    "cvt.rn.f16x2.f32 _, %r1, %r2;",
    "add.cc.u32 _, %r1, %r2;",
    "addc.u32 _, %r1, %r2;",
    "and.pred _, %p1, %p2;",
    "not.pred _, %p1;",
    "prmt.b32 _, %r1, %r2, %r3;",
    "bfi.b32 _, %r1, %r2, 1, 2;",
    "testp.finite.f32 _, %r1;",
    "sin.approx.f32 _, %r1;",
    "bar.sync _;",
    "add.s32 %r1, _, %r2;",
    "st.global.u32 [%d1], _;",
    "@_ add.s32 %r1, %r1, %r2;",
];

#[test]
fn a_result_is_discarded_where_ptx_lets_it_be() {
    for instruction in DISCARDED {
        assert!(!is_refused(instruction), "{instruction}");
    }
    for instruction in KEPT {
        assert!(is_refused(instruction), "{instruction} runs");
    }
}

/// Calls that ptxas 13.0 accepts: the arguments fit the function.
const PASSED: [&str; 16] = [
    "call (ret0), f, (arg0);",
    "call (%r1), f, (%r2);",
    "call (_), f, (%r2);",
    "call (_), f, (arg0);",
    "call (%r1), f, (5);",
    "call (%r1), f, (1.0);",
    "call (%d1), wide, (%d2);",
    "call (arg1), wide, (7);",
    "call (%h1), half, (%h2);",
    "call (eight), array, (eight);",
    "call nothing, ();",
    "call nothing;",
    "@%p1 call (%r1), f, (%r2);",
    "setp.eq.u32 %p1, %r1, 0; @!%p1 call (_), f, (%r1);",
    "cvta.shared.u64 %d2, %d3; mov.u64 %d2, 0; call (%r1), vprintf, (%d2, %d2);",
    "mov.u64 %d2, 0; call (_), vprintf, (%d2, arg1);",
];

/// Calls that it refuses.
const MISFITS: [&str; 32] = [
    "call (%d1), f, (%r2);",
    "call (%h1), f, (%r2);",
    "call (%p1), f, (%r2);",
    "call (%r1), f, (%d2);",
    "call (%r1), f, (%h2);",
    "call (%r1), f, (%p2);",
    "call (%r1), f, (room);",
    "call (%r1), f, (_);",
    "call (%r1), f, (own);",
    "call (own), f, (arg0);",
    "call (ret0), f, (arg1);",
    "call (arg1), f, (arg0);",
    "call (out), f, (arg0);",
    "call (ret0), f, (out);",
    "call (5), f, (arg0);",
    "call ({%r1, %r2}), f, (arg0);",
    "call (ret0), f, ([%d1]);",
    "call (%r1), wide, (%d2);",
    "call (%d1), wide, (%r2);",
    "call (%r1), half, (%h2);",
    "call (%d1), array, (%d2);",
    "call (%d1), array, (eight);",
    "call (four), array, (eight);",
    "call (eight), array, (four);",
    "call (eight), array, (5);",
    "call (%d1), quad, (%d2);",
    "call (_), quad, (3);",
    "call f, (arg0);",
    "call (ret0), f;",
    "call (ret0, ret0), f, (arg0);",
    "call (%d1), vprintf, (%d2, %d2);",
    "call (ret0), vprintf, (arg0, arg1);",
];

#[test]
fn what_a_call_passes_fits_the_function() {
    for instruction in PASSED {
        assert!(!is_refused(instruction), "{instruction}");
    }
    for instruction in MISFITS {
        assert!(is_refused(instruction), "{instruction} runs");
    }
}

#[test]
fn a_register_is_as_wide_as_what_it_holds() {
    let misfits = [
        "cvt.rn.f16x2.f32 %p1, %r1, %r2;",
        "cvt.rn.f16x2.f32 %h1, %r1, %r2;",
        "cvt.u32.u16 %p1, %h1;",
        "cvt.u32.u16 %r1, %p1;",
        "cvt.u64.u64 %d1, %r1;",
        "cvt.u64.u32 %r1, %r1;",
        "ld.global.u32 %h1, [%d1];",
        "ld.global.u8 %p1, [%d1];",
        "ld.global.v2.u32 {%r1, %d1}, [%d1];",
        "st.global.u32 [%d1], %h1;",
        "st.global.u8 [%d1], %p1;",
        "st.global.v2.u32 [%d1], {%r1, %d1};",
        "ld.global.u32 %r1, [%p1];",
        "call (%r1), f, (%p1);",
    ];
    for instruction in misfits {
        assert!(is_refused(instruction), "{instruction} runs");
    }
    let right = [
        "cvt.u64.u32 %d2, %d1;",
        "cvt.u16.u32 %r2, %r1;",
        "cvt.rn.f16x2.f32 %d2, %r1, %r2;",
        "ld.global.u32 %d2, [%d1];",
        "st.global.u32 [%d1], %d2;",
        "ld.global.v2.u16 {%r2, %r3}, [%d1];",
    ];
    for instruction in right {
        assert!(!is_refused(instruction), "{instruction}");
    }
}

#[test]
fn a_discarded_result_is_written_nowhere() {
    // Each register holds its own number, and still holds it after each instruction that discards a result.
    let fill: String = (2..9).map(|i| format!("mov.u32 %r{i}, {i};\nmov.u64 %d{i}, {i};\n")).collect();
    let sum = "mov.u32 %r1, 0;\n".to_owned() + &(2..9).map(|i| format!("mad.lo.u32 %r1, %r{i}, {i}, %r1;\ncvt.u32.u64 %r2, %d{i};\nmad.lo.u32 %r1, %r2, {i}, %r1;\nmov.u32 %r2, 2;\n")).collect::<String>();
    let discards = "atom.shared.add.u32 _, [%r1], 1;\nld.shared.v2.u32 {%r2, _}, [%r1];\nmov.u32 %r2, 2;\nsetp.lt.s32 _, %r2, %r3;\n\
                    call (_), f, (%r3);\nlop3.b32 _, %r2, %r3, %r4, 1;\nmov.b64 {_, %r2}, %d2;\nmov.u32 %r2, 2;\n";
    let body = format!("{fill}{discards}{sum}st.global.u32 [%d1], %r1;");
    let module = Module::parse(text(&body)).expect("PTX");
    let mut out = [0_u8; 4];
    let report = module.launch("k").expect("an entry").output("out", &mut out).run().expect("it runs");
    assert!(report.is_clean(), "{report}");
    let expected: u32 = (2..9).map(|i| 2 * i * i).sum();
    assert_eq!(u32::from_le_bytes(out), expected);
}

#[test]
fn carries_have_32_or_64_bits() {
    for op in ["add.cc", "addc.cc", "addc", "sub.cc", "subc", "mad.lo.cc", "madc.hi"] {
        for ty in ["b8", "u16", "u32", "s32", "u64", "s64", "b128", "u16x2", "pred", "e4m3", "u4"] {
            let (r, third) = (if ty.ends_with("64") || ty == "b128" { "d" } else { "r" }, op.starts_with("mad"));
            let third = if third { format!(", %{r}4") } else { String::new() };
            let module = Module::parse(text(&format!("{op}.{ty} %{r}1, %{r}2, %{r}3{third};"))).expect("PTX");
            let refusal = module.entries().find_map(Result::err).map(|(_, e)| e.kind);
            let expected =
                if matches!(ty, "u32" | "s32" | "u64" | "s64") { None } else { Some(ErrorKind::Unsupported) };
            assert_eq!(refusal, expected, "{op}.{ty}");
        }
    }
}
