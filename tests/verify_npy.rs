//! Contract: what NumPy saves is read bit for bit, what is written is byte for byte what NumPy saves, and a file that is
//! damaged or lies is an error in words, without a panic and without memory that the file does not have.
#![cfg(feature = "npy")]

#[path = "support/numpy.rs"]
mod numpy;

use std::fs;
use std::path::Path;

use cutemplate::dtype::DType;
use cutemplate::verify::{Fill, Tensor, TensorLayout, npy};
use expect_test::{Expect, expect};

/// Saves arrays of random bits in every form, each beside its elements in C order, little-endian.
const SAVE: &str = r#"
import sys, numpy as np, ml_dtypes
from numpy.lib import format
folder = sys.argv[1]
rng = np.random.default_rng(20)
types = {"f64": (np.uint64, np.float64), "f32": (np.uint32, np.float32), "f16": (np.uint16, np.float16)}
types |= {"i32": (np.uint32, np.int32), "i16": (np.uint16, np.int16), "i8": (np.uint8, np.int8)}
types |= {"u8": (np.uint8, np.uint8), "bool": (np.uint8, np.bool_), "bf16": (np.uint16, ml_dtypes.bfloat16)}
types |= {"e4m3": (np.uint8, ml_dtypes.float8_e4m3fn), "e5m2": (np.uint8, ml_dtypes.float8_e5m2)}
foreign = ["bf16", "e4m3", "e5m2"]
shapes = [(1, 1), (3, 12), (1023, 511), (1, 100000), (100000, 1), (), (7,)]
for name, (bits, real) in types.items():
    for shape in shapes:
        raw = rng.integers(0, np.iinfo(bits).max, size=shape, dtype=bits, endpoint=True)
        a = np.asarray(raw).view(real) if shape else np.array(raw, dtype=bits).view(real)
        text = "x".join(map(str, shape)) or "scalar"
        rows, cols = ((1, 1) + shape)[-2:]
        forms = {"c": a, "fortran": np.asfortranarray(a), "bits": a.view(bits) if name in foreign else a}
        if name not in foreign:
            forms["big"] = a.astype(a.dtype.newbyteorder(">"))
        forms["bigbits"] = a.view(bits).astype(np.dtype(bits).newbyteorder(">")) if name in foreign else forms["big"]
        for form, array in forms.items():
            for version in [(1, 0), (2, 0), (3, 0)]:
                stem = f"{folder}/{name}.{form}.{version[0]}.{text}"
                with open(stem + ".npy", "wb") as f:
                    format.write_array(f, array, version=version)
                with open(stem + ".bin", "wb") as f:
                    f.write(np.ascontiguousarray(a).view(bits).astype(np.dtype(bits).newbyteorder("<")).tobytes())
                print(name, rows, cols, stem)
"#;

/// Compares files with what numpy.save makes of the same bits.
const COMPARE: &str = r#"
import io, sys, numpy as np
for line in sys.argv[1:]:
    name, rows, cols, path = line.split(" ", 3)
    dtype = {"f64": "<f8", "f32": "<f4", "f16": "<f2", "bf16": "<u2", "e4m3": "|u1", "e5m2": "|u1", "i32": "<i4",
             "i16": "<i2", "i8": "|i1", "u8": "|u1", "bool": "|b1"}[name]
    array = np.fromfile(path + ".bin", dtype=dtype).reshape(int(rows), int(cols))
    expected = io.BytesIO()
    np.save(expected, array)
    found = open(path + ".npy", "rb").read()
    assert found == expected.getvalue(), (line, found[:128], expected.getvalue()[:128])
    assert np.load(path + ".npy").tobytes() == array.tobytes(), line
    print("same")
"#;

fn little_endian(m: &Tensor) -> Vec<u8> {
    let size = m.dtype().bytes().0 as usize;
    let bits =
        (0..m.rows()).flat_map(|i| (0..m.cols()).map(move |j| (i, j))).map(|(i, j)| m.bits(i, j).expect("inside"));
    bits.flat_map(|b| b.to_le_bytes().into_iter().take(size)).collect()
}

#[test]
fn what_numpy_saves_is_read_bit_for_bit() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(list) = numpy::run(SAVE, &[folder.path().to_str().expect("UTF-8")]) else { return };
    let mut read = 0;
    for line in list.lines() {
        let [name, rows, cols, stem] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let m = npy::read(Path::new(&format!("{stem}.npy")), name.parse().expect("a type")).expect(line);
        assert_eq!((m.rows().to_string(), m.cols().to_string()), (rows.into(), cols.into()), "{line}");
        assert!(little_endian(&m) == fs::read(format!("{stem}.bin")).expect("exists"), "{line}");
        assert!(m.guards().hold(), "{line}");
        read += 1;
    }
    assert_eq!(read, (8 * 5 + 3 * 4) * 7 * 3);
}

#[test]
fn what_is_written_is_what_numpy_saves_byte_for_byte() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut lines = Vec::new();
    for dtype in DType::ALL {
        for (rows, cols, ld) in
            [(1, 1, 1), (3, 12, 12), (3, 12, 17), (1023, 511, 520), (1, 100_000, 100_000), (100_000, 1, 3)]
        {
            let mut m = Tensor::new(*dtype, TensorLayout::padded(rows, cols, ld)).expect("small");
            m.fill(Fill::Specials, rows + ld);
            let stem = format!("{}/{dtype}.{rows}x{cols}.{ld}", folder.path().display());
            npy::write(Path::new(&format!("{stem}.npy")), &m).expect("writable");
            fs::write(format!("{stem}.bin"), little_endian(&m)).expect("writable");
            lines.push(format!("{dtype} {rows} {cols} {stem}"));
        }
    }
    let arguments: Vec<&str> = lines.iter().map(String::as_str).collect();
    let Some(printed) = numpy::run(COMPARE, &arguments) else { return };
    assert_eq!(printed.lines().count(), lines.len());
}

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
        &file(&dict("'<f4'", "(2, 3, 4)"), 96),
        DType::F32,
        expect![[r#"
            found shape (2, 3, 4), required at most two axes, none of them empty
              help: a.reshape(m, n) in numpy"#]],
    );
    refused(
        &file(&dict("'<f4'", "(0, 3)"), 0),
        DType::F32,
        expect![[r#"
            found shape (0, 3), required at most two axes, none of them empty
              help: a.reshape(m, n) in numpy"#]],
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
        expect![[r#"
            found shape (4294967296, 4294967296, 2), required at most two axes, none of them empty
              help: a.reshape(m, n) in numpy"#]],
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

#[test]
fn writing_replaces_a_file_and_leaves_nothing_beside_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("c.npy");
    for rows in [5, 2] {
        npy::write(&path, &Tensor::new(DType::F16, TensorLayout::contiguous(rows, 3)).expect("small"))
            .expect("writable");
        assert_eq!(npy::read(&path, DType::F16).expect("whole").rows(), rows);
    }
    let left: Vec<_> = fs::read_dir(folder.path()).expect("exists").map(|e| e.expect("entry").file_name()).collect();
    assert_eq!(left, ["c.npy"]);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let plain = folder.path().join("plain");
        fs::write(&plain, b"").expect("writable");
        let mode = |p: &Path| fs::metadata(p).expect("exists").permissions().mode();
        assert_eq!(mode(&path), mode(&plain), "as any new file");
    }
}
