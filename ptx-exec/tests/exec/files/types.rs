//! The type of an argument fits the parameter, as compilers declare it.

use std::fs;

use super::{folder, run};

/// What each type of parameter takes: nvcc has `.u8` to `.u64`, `.f32`, `.f64` and arrays of `.b8`; LLVM, of Triton and Numba, `.b16` and
/// `.b32` besides.
#[test]
fn an_argument_has_the_type_of_its_parameter() {
    let forms = [
        ("i8", 1, 'i'),
        ("u8", 1, 'i'),
        ("i16", 2, 'i'),
        ("u16", 2, 'i'),
        ("i32", 4, 'i'),
        ("u32", 4, 'i'),
        ("i64", 8, 'i'),
        ("u64", 8, 'i'),
        ("f16", 2, 'f'),
        ("bf16", 2, 'f'),
        ("f32", 4, 'f'),
        ("f64", 8, 'f'),
    ];
    let params = [
        (".u8 p", 1, 'i'),
        (".s8 p", 1, 'i'),
        (".b8 p", 1, '*'),
        (".u16 p", 2, 'i'),
        (".s16 p", 2, 'i'),
        (".b16 p", 2, '*'),
        (".f16 p", 2, 'f'),
        (".u32 p", 4, 'i'),
        (".s32 p", 4, 'i'),
        (".b32 p", 4, '*'),
        (".f32 p", 4, 'f'),
        (".u64 p", 8, 'i'),
        (".s64 p", 8, 'i'),
        (".b64 p", 8, '*'),
        (".f64 p", 8, 'f'),
        (".align 2 .b8 p[2]", 2, '*'),
        (".align 4 .b8 p[4]", 4, '*'),
        (".align 8 .b8 p[8]", 8, '*'),
    ];
    let folder = folder("{}");
    for (param, bytes, class) in params {
        let ptx =
            format!(".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param {param})\n{{\nret;\n}}\n");
        fs::write(folder.path().join("p.ptx"), ptx).expect("writable");
        let launch = |arg: &str| {
            format!(r#"{{"ptx": "p.ptx", "entry": "k", "grid": [1], "block": [1], "args": [{arg}], "modes": ["all"]}}"#)
        };
        for (form, size, kind) in forms {
            let fits = size == bytes && (class == '*' || class == kind);
            match run(&folder, &launch(&format!("{{\"{form}\": 1}}"))) {
                Ok(_) => assert!(fits, "{form} for {param}"),
                Err(e) => {
                    let e = e.to_string();
                    assert!(
                        !fits && e.contains("`args[0]` does not fit its parameter") && e.contains(form),
                        "{form} for {param}: {e}"
                    );
                }
            }
        }
        // Bytes fit any type, and a pointer fits any type of 64 bits.
        let digits = "00".repeat(bytes);
        assert!(run(&folder, &launch(&format!("{{\"bytes\": \"{digits}\"}}"))).is_ok(), "{param}");
        assert!(run(&folder, &launch(&format!("{{\"bytes\": \"{digits}00\"}}"))).is_err(), "{param}");
        let pointer = run(&folder, &launch(r#"{"npy": "x.npy"}"#));
        assert_eq!(pointer.is_ok(), bytes == 8 && class != 'f', "a pointer for {param}");
    }
}

/// A unique part of a mangled name is enough; the whole name wins over parts of others.
#[test]
fn a_part_of_a_name_selects_the_entry() {
    let folder = folder("{}");
    let entry = |name: &str| format!(".visible .entry {name}(.param .u32 p)\n{{\nret;\n}}\n");
    let all = ["_Z4gemmIfEvPT_i", "_Z4gemmIdEvPT_i", "_Z9softmax_ki", "sum", "_Z4sumsi"].map(entry).concat();
    let ptx = format!(".version 8.0\n.target sm_80\n.address_size 64\n{all}");
    fs::write(folder.path().join("p.ptx"), ptx).expect("writable");
    let launch = |name: &str| {
        format!(r#"{{"ptx": "p.ptx", "entry": "{name}", "grid": [1], "block": [1], "args": [{{"u32": 1}}]}}"#)
    };
    for (part, whole) in
        [("softmax", "_Z9softmax_ki"), ("gemmIf", "_Z4gemmIfEvPT_i"), ("sum", "sum"), ("sums", "_Z4sumsi")]
    {
        assert_eq!(run(&folder, &launch(part)).expect("it runs")[0].entry, whole);
    }
    for (part, words) in
        [("gemm", "several entries"), ("_Z", "several entries"), ("", "no such entry"), ("softmin", "no such entry")]
    {
        let e = run(&folder, &launch(part)).expect_err("it is not one entry").to_string();
        assert!(e.contains(words) && e.contains("_Z4gemmIdEvPT_i"), "{e}");
    }
}
