//! Memory: variables of the module, structs with pointers and maps, pointers into buffers, uninitialised memory.

use std::fs;

use ptx_exec::FindingKind;
use ptx_exec::{Data, Module};

use super::{elements, error_of, folder, npy, run};

const HEAD: &str = ".version 8.0\n.target sm_90a\n.address_size 64\n";

/// Adds table[1] and the counter into out[0]; counts; the struct is read and written by 8 bytes.
const VARIABLES: &str = ".const .align 4 .f32 table[4] = {1.0, 2.0, 3.0, 4.0};\n.global .align 4 .u32 counter = 5;\n\
    .global .align 8 .b8 _ZN3lib5stateE[16];\n.global .align 4 .f32 one;\n.global .u64 where = counter;\n\
    .visible .entry k(.param .u64 out)\n{\n.reg .f32 %f<4>;\n.reg .b32 %r<4>;\n.reg .b64 %d<4>;\nld.param.u64 %d1, [out];\n\
    ld.const.f32 %f1, [table+4];\nst.global.f32 [%d1], %f1;\nld.global.u32 %r1, [counter];\nadd.u32 %r1, %r1, 1;\n\
    st.global.u32 [counter], %r1;\nld.global.u64 %d2, [_ZN3lib5stateE];\nadd.u64 %d2, %d2, 7;\nst.global.u64 [_ZN3lib5stateE+8], %d2;\n\
    st.global.f32 [one], %f1;\nret;\n}\n";

fn with(ptx: &str) -> tempfile::TempDir {
    let folder = folder("{}");
    fs::write(folder.path().join("p.ptx"), format!("{HEAD}{ptx}")).expect("writable");
    fs::write(folder.path().join("one.npy"), npy(&[0.0])).expect("writable");
    folder
}

fn text(args: &str, rest: &str) -> String {
    format!(r#"{{"ptx": "p.ptx", "entry": "k", "grid": [1], "block": [1], "args": [{args}], "modes": ["all"]{rest}}}"#)
}

const OUT: &str = r#"{"npy": "one.npy", "out": "z.npy"}"#;

#[test]
fn variables_of_the_module_are_given_and_read_back() {
    let folder = with(VARIABLES);
    fs::write(folder.path().join("table.npy"), npy(&[0.0, 9.0, 0.0, 0.0])).expect("writable");
    let variables = r#", "variables": {"table": {"npy": "table.npy", "out": "t.npy"}, "counter": {"out": "c.npy"},
        "state": {"bytes": "01000000000000000000000000000000", "out": "s.npy"}, "one": {"out": "o.npy"}}"#;
    let report = run(&folder, &text(OUT, variables)).expect("it runs").remove(0);
    assert!(report.report.is_clean(), "{}", report.report);
    assert_eq!(report.written.len(), 5);
    assert_eq!(elements(&folder, "z.npy"), 9_f32.to_le_bytes());
    assert_eq!(elements(&folder, "t.npy")[4..8], 9_f32.to_le_bytes());
    assert_eq!(elements(&folder, "c.npy"), 6_u32.to_le_bytes());
    assert_eq!(elements(&folder, "s.npy"), [1_u64.to_le_bytes(), 8_u64.to_le_bytes()].concat());
    // Without an array, the header has the type of the PTX, and the shape.
    let header =
        |name: &str| String::from_utf8_lossy(&fs::read(folder.path().join(name)).expect("written")).into_owned();
    assert!(header("c.npy").contains("'descr': '<u4', 'fortran_order': False, 'shape': (), }"));
    assert!(
        header("o.npy").contains("'descr': '<f4'")
            && header("s.npy").contains("'descr': '|u1', 'fortran_order': False, 'shape': (16,), }")
    );
    // Each launch begins with what the PTX says.
    run(&folder, &text(OUT, r#", "variables": {"counter": {"out": "c.npy"}}"#)).expect("it runs");
    assert_eq!(
        (elements(&folder, "z.npy"), elements(&folder, "c.npy")),
        (2_f32.to_le_bytes().into(), 6_u32.to_le_bytes().into())
    );
}

#[test]
fn variables_that_do_not_fit_are_refused() {
    let folder = with(VARIABLES);
    for (variable, words) in [
        (r#""tabel": {"out": "t.npy"}"#, "names no variable"),
        (r#""e": {"out": "t.npy"}"#, "names several variables"),
        (r#""": {"out": "t.npy"}"#, "names no variable"),
        (r#""table": {}"#, "says nothing"),
        (r#""table": {"bytes": "00"}"#, "does not fit its variable"),
        (r#""table": {"npy": "x.npy"}"#, "does not fit its variable"),
        (r#""table": {"npy": "one.npy", "bytes": "00"}"#, "says two things"),
        (r#""where": {"out": "t.npy"}"#, "holds addresses"),
        (r#""state": {"out": "t.npy"}, "lib5state": {"out": "u.npy"}"#, "a second time"),
    ] {
        let e = error_of(&folder, &text(OUT, &format!(r#", "variables": {{{variable}}}"#)));
        assert!(e.contains(words) && e.contains("`variables."), "{variable}: {e}");
    }
    let folder = with(".visible .entry k(.param .u64 out)\n{\nret;\n}\n");
    let e = error_of(&folder, &text(OUT, r#", "variables": {"table": {"out": "t.npy"}}"#));
    assert!(e.contains("a text with variables"), "{e}");
}

#[test]
fn a_launch_of_rust_gives_variables_too() {
    let module = Module::parse(format!("{HEAD}{VARIABLES}")).expect("it is PTX");
    let (mut out, mut counter) = ([0_u8; 4], 41_u32.to_le_bytes());
    let launch = module.launch("k").expect("an entry").output("out", &mut out);
    let report = launch.variable("counter", Data::Write(&mut counter)).run().expect("it runs");
    assert!(report.is_clean());
    assert_eq!(counter, 42_u32.to_le_bytes());
    let mut out = [0_u8; 4];
    for (name, data, words) in [
        ("count", Data::Read(&[0; 4]), "no such variable"),
        ("counter", Data::Read(&[0; 3]), "do not fit their variable"),
        ("counter", Data::Scratch(4), "no contents"),
    ] {
        let launch = module.launch("k").expect("an entry").output("out", &mut out).variable(name, data);
        let e = launch.run().expect_err(words).to_string();
        assert!(e.contains(words), "{e}");
    }
}

/// y[0] = x[0] a + n, of a struct {x, y, n, a}.
const STRUCT: &str = ".visible .entry k(.param .align 8 .b8 p[24])\n{\n.reg .f32 %f<5>;\n.reg .b32 %r<4>;\n.reg .b64 %d<4>;\n\
    ld.param.u64 %d1, [p];\nld.param.u64 %d2, [p+8];\nld.param.u32 %r1, [p+16];\nld.param.f32 %f1, [p+20];\ncvt.rn.f32.s32 %f2, %r1;\n\
    ld.global.f32 %f3, [%d1];\nfma.rn.f32 %f4, %f3, %f1, %f2;\nst.global.f32 [%d2], %f4;\nret;\n}\n";

#[test]
fn structs_hold_pointers_and_numbers() {
    let folder = with(STRUCT);
    let members = |x: &str| {
        format!(
            r#"{{"struct": [{{"at": 16, "i32": -3}}, {{"at": 0, {x}}}, {{"at": 20, "f32": 0.5}}, {{"at": 8, "npy": "one.npy", "out": "z.npy"}}]}}"#
        )
    };
    // x[i] is i: a pointer to its own array, into it, and into a buffer with a name.
    for (x, rest, result) in [
        (r#""npy": "x.npy""#, "", -3.0_f32),
        (r#""npy": "x.npy", "byte": 40"#, "", 2.0),
        (r#""of": "all", "byte": 80"#, r#", "buffers": {"all": {"npy": "x.npy"}}"#, 7.0),
        (r#""of": "raw""#, r#", "buffers": {"raw": {"bytes": "0000c03f"}}"#, -2.25),
    ] {
        let report = run(&folder, &text(&members(x), rest)).expect("it runs").remove(0);
        assert!(report.report.is_clean(), "{}", report.report);
        assert_eq!(elements(&folder, "z.npy"), result.to_le_bytes(), "{x}");
    }
    for (members, words) in [
        (r#"{"at": 17, "i64": 1}"#, "lies outside of its struct"),
        (r#"{"at": 0, "i64": 1}, {"at": 7, "u8": 1}"#, "overlaps another member"),
        (r#"{"i64": 1}"#, "has no `at`"),
        (r#"{"at": 0}"#, "does not name its kind"),
        (r#"{"at": 0, "of": 0}"#, "does not refer to memory"),
        (r#"{"at": 0, "struct": []}"#, "unknown key"),
        (r#"{"at": 0, "npy": "x.npy", "byte": 281}"#, "lies outside of the memory"),
    ] {
        let e = error_of(&folder, &text(&format!(r#"{{"struct": [{members}]}}"#), ""));
        assert!(e.contains(words) && e.contains("args[0].struct["), "{members}: {e}");
    }
    let e = error_of(&folder, &text(&members(r#""npy": "x.npy""#), r#", "buffers": {"all": {"npy": "x.npy"}}"#));
    assert!(e.contains("`buffers.all` is not used by an argument"), "{e}");
}

/// A tensor map in a struct, behind a pointer.
#[test]
fn structs_hold_tensor_maps() {
    let folder = with(
        ".visible .entry k(.param .align 64 .b8 p[192])\n{\n.reg .pred %p;\n.reg .b32 %r<9>;\n.reg .b64 %d<5>;\n\
        .shared .align 128 .b8 s[128];\n.shared .align 8 .b8 bar[8];\nmov.u32 %r1, s;\nmov.u32 %r2, bar;\nmov.b64 %d1, p;\n\
        cvta.param.u64 %d1, %d1;\nadd.u64 %d1, %d1, 64;\nld.param.u64 %d2, [p];\nmov.u32 %r3, 0;\nmov.u32 %r4, 1;\n\
        mbarrier.init.shared.b64 [%r2], 1;\nfence.mbarrier_init.release.cluster;\nmbarrier.arrive.expect_tx.shared.b64 _, [%r2], 64;\n\
        cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%d1, {%r3, %r4}], [%r2];\n\
        WAIT:\nmbarrier.try_wait.parity.shared.b64 %p, [%r2], 0;\n@!%p bra WAIT;\nld.shared.b32 %r5, [%r1];\n\
        st.global.b32 [%d2], %r5;\nret;\n}\n",
    );
    let map = r#"{"at": 64, "tensor_map": {"of": "all", "byte": 32, "dtype": "f32", "dims": [16, 2], "strides": [128], "box": [16, 1]}}"#;
    let rest = r#", "buffers": {"all": {"npy": "x.npy"}}"#;
    let args = format!(r#"{{"struct": [{map}, {{"at": 0, "npy": "one.npy", "out": "z.npy"}}]}}"#);
    let report = run(&folder, &text(&args, rest)).expect("it runs").remove(0);
    assert!(report.report.is_clean(), "{}", report.report);
    assert_eq!(elements(&folder, "z.npy"), 40_f32.to_le_bytes());
    // A map lies at a multiple of 64 bytes.
    let e = error_of(
        &folder,
        &text(&args.replace(r#""at": 64"#, r#""at": 32"#).replace(r#""at": 0"#, r#""at": 184"#), rest),
    );
    assert!(e.contains("a multiple of 64"), "{e}");
}

/// Two tensor maps in a buffer: the kernel takes the second.
#[test]
fn buffers_hold_tensor_maps() {
    let kernel = ".visible .entry k(.param .u64 m, .param .u64 z)\n{\n.reg .pred %p;\n.reg .b32 %r<9>;\n.reg .b64 %d<5>;\n\
        .shared .align 128 .b8 s[128];\n.shared .align 8 .b8 bar[8];\nmov.u32 %r1, s;\nmov.u32 %r2, bar;\nld.param.u64 %d1, [m];\n\
        ld.param.u64 %d2, [z];\nmov.u32 %r3, 0;\nmov.u32 %r4, 1;\nfence.proxy.tensormap::generic.acquire.sys [%d1], 128;\n\
        mbarrier.init.shared.b64 [%r2], 1;\nfence.mbarrier_init.release.cluster;\nmbarrier.arrive.expect_tx.shared.b64 _, [%r2], 64;\n\
        cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%d1, {%r3, %r4}], [%r2];\n\
        WAIT:\nmbarrier.try_wait.parity.shared.b64 %p, [%r2], 0;\n@!%p bra WAIT;\nld.shared.b32 %r5, [%r1];\n\
        st.global.b32 [%d2], %r5;\nret;\n}\n";
    let folder = with(kernel);
    let map = |byte: u32, of: &str| {
        format!(r#"{{{of}, "byte": {byte}, "dtype": "f32", "dims": [16, 2], "strides": [128], "box": [16, 1]}}"#)
    };
    let maps = format!("{}, {}", map(0, r#""npy": "x.npy""#), map(32, r#""of": "all""#));
    let rest = format!(r#", "buffers": {{"maps": {{"tensor_maps": [{maps}]}}, "all": {{"npy": "x.npy"}}}}"#);
    let args = r#"{"of": "maps", "byte": 128}, {"npy": "one.npy", "out": "z.npy"}"#;
    let report = run(&folder, &text(args, &rest)).expect("it runs").remove(0);
    assert!(report.report.is_clean(), "{}", report.report);
    assert_eq!(elements(&folder, "z.npy"), 40_f32.to_le_bytes());
    let report = run(&folder, &text(&args.replace("128", "0"), &rest)).expect("it runs").remove(0);
    assert!(report.report.is_clean(), "{}", report.report);
    assert_eq!(elements(&folder, "z.npy"), 32_f32.to_le_bytes());
    // Without the fence, which each block needs.
    let folder = with(&kernel.replace("fence.proxy.tensormap::generic.acquire.sys [%d1], 128;\n", ""));
    let report = run(&folder, &text(args, &rest)).expect("it runs").remove(0);
    assert!(report.report.to_string().contains("rule map-acquire"), "{}", report.report);
}

/// b[0] = a[0]; b may be part of a's memory.
const COPY: &str = ".visible .entry k(.param .u64 a, .param .u64 b)\n{\n.reg .b32 %r<3>;\n.reg .b64 %d<3>;\nld.param.u64 %d1, [a];\n\
    ld.param.u64 %d2, [b];\nld.global.b32 %r1, [%d1];\nst.global.b32 [%d2], %r1;\nret;\n}\n";

#[test]
fn two_pointers_have_one_buffer() {
    let folder = with(COPY);
    for args in [
        r#"{"npy": "x.npy", "out": "z.npy", "byte": 12}, {"of": 0, "byte": 276}"#,
        r#"{"of": 1, "byte": 12}, {"npy": "x.npy", "out": "z.npy", "byte": 276}"#,
    ] {
        let report = run(&folder, &text(args, "")).expect("it runs").remove(0);
        assert!(report.report.is_clean(), "{}", report.report);
        assert_eq!(elements(&folder, "z.npy")[276..], 3_f32.to_le_bytes(), "{args}");
    }
    let named = r#", "buffers": {"all": {"npy": "x.npy", "out": "z.npy"}}"#;
    run(&folder, &text(r#"{"of": "all", "byte": 20}, {"of": "all"}"#, named)).expect("it runs");
    assert_eq!(elements(&folder, "z.npy")[..4], 5_f32.to_le_bytes());
    for (args, words) in [
        (r#"{"of": 1}, {"of": 0}"#, "does not refer to memory"),
        (r#"{"of": "b"}, {"npy": "x.npy"}"#, "does not refer to memory"),
        (r#"{"of": 7}, {"npy": "x.npy"}"#, "required: one of 1"),
        (r#"{"of": -1}, {"npy": "x.npy"}"#, "`args[0].of` cannot be read"),
        (r#"{"of": 1, "byte": 281}, {"npy": "x.npy"}"#, "lies outside of the memory"),
        (r#"{"of": 1, "out": "z.npy"}, {"npy": "x.npy"}"#, "has no meaning here"),
    ] {
        let e = error_of(&folder, &text(args, ""));
        assert!(e.contains(words), "{args}: {e}");
    }
}

/// Uninitialised memory is found in mode `init` only. Memory that is written first gives no finding.
#[test]
fn memory_that_nobody_wrote_is_known_as_such() {
    let folder = with(COPY);
    let result = r#"{"npy": "one.npy", "out": "z.npy"}"#;
    for (a, is_right) in [
        (r#"{"npy": "x.npy"}"#, true),
        (r#"{"npy": "x.npy", "written": true}"#, true),
        (r#"{"npy": "x.npy", "written": false}"#, false),
        (r#"{"scratch": 64}"#, false),
        (r#"{"scratch": 64, "byte": 60}"#, false),
    ] {
        let report = run(&folder, &text(&format!("{a}, {result}"), "")).expect("it runs").remove(0).report;
        let kinds: Vec<FindingKind> = report.findings.iter().map(|f| f.kind).collect();
        assert_eq!(kinds, if is_right { vec![] } else { vec![FindingKind::Uninitialized] }, "{a}");
    }
    // An output with `written: false` only gives the size; the kernel may write it.
    for b in [r#"{"scratch": 4}"#, r#"{"npy": "one.npy", "written": false, "out": "z.npy"}"#] {
        let report =
            run(&folder, &text(&format!("{{\"npy\": \"x.npy\", \"byte\": 8}}, {b}"), "")).expect("it runs").remove(0);
        assert!(report.report.is_clean(), "{b}: {}", report.report);
    }
    assert_eq!(elements(&folder, "z.npy"), 2_f32.to_le_bytes());
    let room = r#", "buffers": {"room": {"scratch": 8, "out": "r.npy"}}"#;
    run(&folder, &text(r#"{"npy": "x.npy", "byte": 16}, {"of": "room", "byte": 4}"#, room)).expect("it runs");
    assert_eq!(elements(&folder, "r.npy"), [vec![0xcd; 4], 4_f32.to_le_bytes().to_vec()].concat());
    let stray = run(&folder, &text(r#"{"npy": "x.npy"}, {"scratch": 3}"#, "")).expect("it runs").remove(0).report;
    assert!(
        stray.findings.iter().any(|f| f.kind == FindingKind::OutOfBounds && f.to_string().contains("args[1]")),
        "{stray}"
    );
}
