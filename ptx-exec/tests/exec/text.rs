//! Reading PTX texts: accepted texts, refusals, and no panic on any input.

use ptx_exec::{Error, ErrorKind, Module};

pub(crate) const HEAD: &str = ".version 8.0\n.target sm_80\n.address_size 64\n";

fn refused(body: &str) -> Error {
    let text = format!(
        "{HEAD}.visible .entry k(.param .u64 p)\n{{\n.reg .b32 %r<9>;\n.reg .b64 %d<9>;\n.reg .pred %p<3>;\n{body}\nret;\n}}\n"
    );
    match Module::parse(text) {
        Err(e) => e,
        Ok(module) => module.launch("k").expect_err(body),
    }
}

#[test]
fn what_is_not_run_is_named_with_its_line() {
    for (body, opcode) in [
        ("wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {%r1}, %d1, %d1;", "wgmma.mma_async.sp"),
        ("cp.async.mbarrier.arrive.noinc.shared::cluster.b64 [%r1];", "cp.async.mbarrier.arrive"),
        ("st.async.release.global.mbarrier::complete_tx::bytes.b32 [%d1], %r1, [%r2];", "st.async.release"),
        ("tex.2d.v4.f32.f32 {%r1,%r2,%r3,%r4}, [%d1, {%r1,%r2}];", "tex.2d.v4.f32.f32"),
        ("add.rn.ftz.f64 %d1, %d1, %d1, %d1;", ""),
        ("frobnicate.b32 %r1, %r2;", "frobnicate.b32"),
        ("shfl.up.b32 %r1, %r1, 1, 0;", "shfl.up.b32"),
    ] {
        let error = refused(body);
        let line = error.position.expect("a place").line;
        assert_eq!(line, 9, "{error}");
        assert!(error.to_string().contains(opcode), "{error}");
    }
}

#[test]
fn mistakes_are_explained() {
    for (body, kind, what) in [
        ("add.u32 %r1, %r2, %q;", ErrorKind::Name, "undeclared"),
        ("add.u32 %r1, %r2;", ErrorKind::Syntax, "operands"),
        ("add.u32 %d1, %r2, %r3;", ErrorKind::Name, "does not fit"),
        ("bra NOWHERE;", ErrorKind::Name, "label"),
        ("ld.shared.u32 %r1, [p];", ErrorKind::Name, "state space"),
        ("mov.u32 %r1, 0x1g;", ErrorKind::Syntax, "number"),
        ("mov.u32 %r1, ;", ErrorKind::Syntax, "operand"),
        ("mov.u32 %r1, \u{e9};", ErrorKind::Syntax, "character"),
        (".reg .b32 %r<3>;", ErrorKind::Name, "twice"),
        ("@%r1 bra X; X:", ErrorKind::Name, "predicate"),
        ("ld.param.u64 %d1, [p+8];", ErrorKind::Syntax, "beyond"),
        ("call nobody;", ErrorKind::Name, "function"),
        ("/* open", ErrorKind::Syntax, "comment"),
    ] {
        let error = refused(body);
        assert_eq!(error.kind, kind, "{body}: {error}");
        assert!(error.to_string().contains(what), "{body}: {error}");
    }
    assert!(Module::parse("").is_err());
    assert!(Module::parse(".version 1.0\n").is_err());
}

#[test]
fn launches_that_no_gpu_could_be_given_are_refused() {
    let module =
        Module::parse(format!("{HEAD}.visible .entry k(.param .u64 p, .param .u32 n)\n.reqntid 64\n{{ ret; }}"))
            .expect("PTX");
    let launch = || module.launch("k").expect("an entry");
    let text = |e: Result<_, Error>| e.map(|_: ptx_exec::Report| ()).expect_err("refused").to_string();
    let full = || launch().block(&[64]).arg_bytes(&[0; 8]).arg_bytes(&[0; 4]);
    assert!(full().run().is_ok());

    assert!(text(launch().arg_bytes(&[0; 4]).run()).contains("does not fit its parameter"));
    assert!(text(launch().block(&[64]).arg_bytes(&[0; 8]).run()).contains("fewer arguments"));
    assert!(text(full().arg_bytes(&[0]).run()).contains("more arguments"));
    assert!(text(full().block(&[32]).run()).contains(".reqntid"));
    assert!(text(full().block(&[2048]).run()).contains("1 to 1024 threads"));
    assert!(text(full().grid(&[1, 70_000]).run()).contains("65535"));
    assert!(text(full().dynamic_smem(300_000).run()).contains("shared memory"));
    assert!(module.launch("other").is_err());
}

#[test]
fn hostile_texts_take_little_time() {
    let deep = format!("{HEAD}.visible .entry k()\n{{\n{}", "{".repeat(100_000));
    assert!(Module::parse(deep).is_err());
    let many = format!("{HEAD}.visible .entry k()\n{{\n.reg .b32 %r<4000000000>;\nret;\n}}");
    let error = Module::parse(many).expect("PTX").launch("k").expect_err("too many");
    assert!(error.to_string().contains("too many registers"), "{error}");
    // Functions that double: refused before they fill the memory.
    let mut doubling = format!("{HEAD}.func f0()\n{{ ret; }}\n");
    for i in 1..40 {
        doubling.push_str(&format!(".func f{i}()\n{{ call f{}; call f{}; ret; }}\n", i - 1, i - 1));
    }
    doubling.push_str(".visible .entry k()\n{ call f39; ret; }\n");
    let error = Module::parse(doubling).expect("PTX").launch("k").expect_err("too long");
    assert!(error.to_string().contains("too long"), "{error}");
}
