//! Contract: a `.npy` file that is damaged or lies is an error in words, without a panic and without memory that the file does not
//! have.
#![cfg(feature = "npy")]

use std::fs;

use cutemplate::dtype::DType;
use cutemplate::verify::{Tensor, TensorLayout, npy};
use expect_test::{Expect, expect};

/// A version 1.0 file with this dict and so many bytes of elements.
fn file(dict: &str, bytes: usize) -> Vec<u8> {
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((dict.len() as u16).to_le_bytes());
    file.extend(dict.as_bytes());
    file.resize(file.len() + bytes, 0);
    file
}

fn refused(bytes: &[u8], dtype: DType, expected: Expect) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.npy");
    fs::write(&path, bytes).expect("writable");
    let error = npy::read(&path, dtype).expect_err("damaged").to_string();
    expected.assert_eq(error.strip_prefix(&format!("{}: ", path.display())).expect("the file's name comes first"));
}

#[test]
fn files_that_are_no_npy_files_are_refused_in_words() {
    refused(b"", DType::F32, expect![[r#"not a readable .npy file: found "" at the start, required "\x93NUMPY""#]]);
    refused(
        b"PK\x03\x04 an npz file",
        DType::F32,
        expect![[r#"not a readable .npy file: found "PK\x03\x04 an " at the start, required "\x93NUMPY""#]],
    );
    refused(
        b"\x93NUMPY\x04\x00\x00\x00",
        DType::F32,
        expect!["not a readable .npy file: found format version 4.0, required 1.0, 2.0 or 3.0"],
    );
    refused(b"\x93NUMPY\x01\x00", DType::F32, expect!["not a readable .npy file: the file ends inside the header"]);
    refused(
        b"\x93NUMPY\x02\x00\xff\xff\xff\xff",
        DType::F32,
        expect![
            "not a readable .npy file: found a header of 4294967295 bytes, required at most 10000, as numpy.load requires"
        ],
    );
    refused(
        &file("{'descr': '<f4'", 0)[..20],
        DType::F32,
        expect!["not a readable .npy file: the file ends inside the header"],
    );
    refused(
        &file(&format!("{{'descr': {}", "(".repeat(9000)), 0),
        DType::F32,
        expect![[
            r#"not a readable .npy file: found "((((((((((((((((((((((((" at byte 10 of the header dict, required a type descriptor in quotes"#
        ]],
    );
    refused(
        &file("{'descr': '<f4', 'fortran_order': 0, 'shape': (1, 1), }", 4),
        DType::F32,
        expect![[
            r#"not a readable .npy file: found "0, 'shape': (1, 1), }" at byte 34 of the header dict, required True or False"#
        ]],
    );
    refused(
        &file("{'descr': '<f4', 'fortran_order': False, 'shape': (-1, 4), }", 4),
        DType::F32,
        expect![[
            r#"not a readable .npy file: found "-1, 4), }" at byte 51 of the header dict, required an extent from 0 to 2^64 - 1"#
        ]],
    );
    refused(
        &file("{'descr': '<f4', 'fortran_order': False, }", 4),
        DType::F32,
        expect![[
            r#"not a readable .npy file: the header dict has no key "shape", required are descr, fortran_order and shape, once each"#
        ]],
    );
    refused(
        &file("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", 4),
        DType::F32,
        expect![[
            r#"not a readable .npy file: the header dict has the key "descr" twice, required are descr, fortran_order and shape, once each"#
        ]],
    );
    refused(
        &file("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'x': 1}", 4),
        DType::F32,
        expect![[
            r#"not a readable .npy file: the header dict has the key "x", required are descr, fortran_order and shape, once each"#
        ]],
    );
}

#[test]
fn headers_that_lie_about_the_elements_are_refused_in_words() {
    let dict = |descr: &str, shape: &str| format!("{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}");
    refused(
        &file(&dict("'<f8'", "(3, 12)"), 288),
        DType::F32,
        expect![[r#"
        found elements of type "<f8", required f32 (<f4)
          help: convert with numpy: a.astype(numpy.float32)"#]],
    );
    refused(
        &file(&dict("'<f4'", "(3, 12)"), 144),
        DType::Bf16,
        expect![[r#"
        found elements of type "<f4", required bf16 (<u2, <V2, |V2)
          help: convert with numpy: a.astype(ml_dtypes.bfloat16), or its bits as numpy.uint16"#]],
    );
    refused(
        &file(&dict("[('a', '<f4'), ('b', '<f4')]", "(3,)"), 24),
        DType::F16,
        expect![[r#"
        found elements of type "[('a', '<f4'), ('b', '<f4')]", required f16 (<f2)
          help: convert with numpy: a.astype(numpy.float16)"#]],
    );
    refused(
        &file(&dict("'|O'", "(3,)"), 24),
        DType::F32,
        expect![[r#"
        found elements of type "|O", required f32 (<f4)
          help: convert with numpy: a.astype(numpy.float32)"#]],
    );
    refused(
        &file(&dict("'<f4'", "(2, 1, 1, 1, 1, 3)"), 24),
        DType::F32,
        expect![[r#"
            found shape (2, 1, 1, 1, 1, 3), required at most 5 axes
              help: a.reshape(..) in numpy, or a.squeeze() for axes of one element"#]],
    );
    refused(
        &file(&dict("'<f4'", "(0, 3)"), 4),
        DType::F32,
        expect![
            "found 4 bytes of elements, required 0 for shape (0, 3) of f32: the file is longer than its header says"
        ],
    );
    refused(
        &file(&dict("'<f4'", "(3, 12)"), 143),
        DType::F32,
        expect![
            "found 143 bytes of elements, required 144 for shape (3, 12) of f32: the file is truncated, or its header is wrong"
        ],
    );
    refused(
        &file(&dict("'<f4'", "(3, 12)"), 145),
        DType::F32,
        expect![
            "found 145 bytes of elements, required 144 for shape (3, 12) of f32: the file is longer than its header says"
        ],
    );
    refused(
        &file(&dict("'<f4'", "(1099511627776, 1099511627776)"), 4),
        DType::F32,
        expect![
            "found 4 bytes of elements, required more than 2^64 for shape (1099511627776, 1099511627776) of f32: the file is truncated, or its header is wrong"
        ],
    );
    refused(
        &file(&dict("'<f4'", "(4294967296, 4294967296, 2)"), 4),
        DType::F32,
        expect![
            "found 4 bytes of elements, required more than 2^64 for shape (4294967296, 4294967296, 2) of f32: the file is truncated, or its header is wrong"
        ],
    );
    refused(
        &file(&dict("'<f4'", "(99999999999999999999, 1)"), 4),
        DType::F32,
        expect![[
            r#"not a readable .npy file: found "99999999999999999999, 1)" at byte 51 of the header dict, required an extent from 0 to 2^64 - 1"#
        ]],
    );
}

#[test]
fn a_missing_file_and_an_unwritable_place_are_refused_in_words() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("absent.npy");
    let error = npy::read(&path, DType::F32).expect_err("absent").to_string();
    assert!(error.starts_with(&format!("{}: ", path.display())), "{error}");
    let m = Tensor::new(DType::F32, TensorLayout::contiguous(1, 1)).expect("small");
    let error = npy::write(&folder.path().join("no/such/folder.npy"), &m).expect_err("no folder").to_string();
    assert!(error.contains("no/such/folder.npy: "), "{error}");
}
