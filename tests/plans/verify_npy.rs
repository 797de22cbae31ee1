//! Contract: what NumPy saves is read bit for bit, what is written is byte for byte what NumPy saves, and a file that is
//! damaged or lies is an error in words, without a panic and without memory that the file does not have.
#![cfg(feature = "npy")]

use crate::numpy;

use std::fs;
use std::path::Path;

use crate::kernels::Random;
use cutemplate::dtype::DType;
use cutemplate::verify::{Fill, Tensor, TensorLayout, npy};
use cutemplate::view::ViewLayout;

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
shapes = [(1, 1), (3, 12), (1, 20000), (20000, 1), (), (7,), (2, 3, 4), (5, 1, 3, 2), (2, 3, 4, 5, 6)]
for name, (bits, real) in types.items():
    # Of four and eight bytes, more than are buffered at once.
    for shape in shapes + [(1023, 511) if np.dtype(bits).itemsize > 2 else (123, 511)]:
        raw = rng.integers(0, np.iinfo(bits).max, size=shape, dtype=bits, endpoint=True)
        a = np.asarray(raw).view(real) if shape else np.array(raw, dtype=bits).view(real)
        text = "x".join(map(str, shape)) or "scalar"
        forms = {"c": a, "fortran": np.asfortranarray(a), "bits": a.view(bits) if name in foreign else a}
        if name not in foreign:
            forms["big"] = a.astype(a.dtype.newbyteorder(">"))
        forms["bigbits"] = a.view(bits).astype(np.dtype(bits).newbyteorder(">")) if name in foreign else forms["big"]
        for form, array in forms.items():
            # Of a large one, once is enough: a version is of the header.
            for version in [(1, 0), (2, 0), (3, 0)] if a.size <= 20000 else [(1, 0)]:
                stem = f"{folder}/{name}.{form}.{version[0]}.{text}"
                with open(stem + ".npy", "wb") as f:
                    format.write_array(f, array, version=version)
                with open(stem + ".bin", "wb") as f:
                    f.write(np.ascontiguousarray(a).view(bits).astype(np.dtype(bits).newbyteorder("<")).tobytes())
                print(name, "x".join(map(str, shape or (1,))), stem)
"#;

/// Compares files with the same bits in C order, and with what numpy.save makes of them: where a tensor has no gaps, of an array
/// of the same strides, else of a copy in the order of the file.
const COMPARE: &str = r#"
import io, sys, numpy as np
from numpy.lib.stride_tricks import as_strided
for line in open(sys.argv[1]).read().splitlines():
    name, shape, strides, path = line.split(" ", 3)
    shape, strides = (tuple(map(int, text.split("x"))) for text in (shape, strides))
    dtype = {"f64": "<f8", "f32": "<f4", "f16": "<f2", "bf16": "<u2", "e4m3": "|u1", "e5m2": "|u1", "i32": "<i4",
             "i16": "<i2", "i8": "|i1", "u8": "|u1", "bool": "|b1"}[name]
    array = np.fromfile(path + ".bin", dtype=dtype).reshape(shape)
    loaded = np.load(path + ".npy")
    assert loaded.shape == shape and loaded.tobytes() == array.tobytes(), line
    span = 1 + sum((extent - 1) * stride for extent, stride in zip(shape, strides))
    strided = as_strided(np.zeros(span, dtype=dtype), shape, [stride * array.itemsize for stride in strides])
    if span == array.size:
        strided[...] = array
    else:
        # With gaps or broadcast: Fortran order where the first mode runs fastest.
        inner = [stride for extent, stride in zip(shape, strides) if extent != 1]
        fortran = len(inner) > 1 and inner[0] > 0 and all(x < y for x, y in zip(inner, inner[1:]))
        strided = np.asfortranarray(array) if fortran else array
    expected = io.BytesIO()
    np.save(expected, strided)
    found = open(path + ".npy", "rb").read()
    assert found == expected.getvalue(), (line, found[:128], expected.getvalue()[:128])
    print("same", "fortran" if b"'fortran_order': True" in found[:128] else "c")
"#;

/// The elements in C order: the last mode runs the fastest.
fn bits(m: &Tensor) -> Vec<u64> {
    let mut at = vec![0; m.shape().len()];
    (0..m.shape().iter().product::<i64>())
        .map(|_| {
            let bits = m.bits_at(&at).expect("inside");
            for (c, extent) in at.iter_mut().zip(m.shape()).rev() {
                *c += 1;
                if *c < *extent as u64 {
                    break;
                }
                *c = 0;
            }
            bits
        })
        .collect()
}

fn little_endian(m: &Tensor) -> Vec<u8> {
    let size = m.dtype().bytes().0 as usize;
    bits(m).iter().flat_map(|b| b.to_le_bytes().into_iter().take(size)).collect()
}

fn joined(numbers: &[i64]) -> String {
    numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join("x")
}

/// Any strides without overlap: modes in any order, with and without gaps between them, some broadcast.
fn any_layout(random: &mut Random, shape: &[i64]) -> ViewLayout {
    let mut order: Vec<usize> = (0..shape.len()).collect();
    match random.below(3) {
        0 => {}
        1 => order.reverse(),
        _ => random.shuffle(&mut order),
    }
    let (gaps, broadcast) = (random.chance(40), random.chance(15));
    let (mut stride, mut next) = (vec![0; shape.len()], 1);
    for mode in order {
        if broadcast && random.chance(40) {
            continue;
        }
        stride[mode] = next + if gaps { random.pick(&[0, 1, 5]) } else { 0 };
        next = stride[mode] * shape[mode];
    }
    ViewLayout::strided(shape, &stride).expect("rank 1 to 5")
}

fn any_shape(random: &mut Random) -> Vec<i64> {
    (0..1 + random.below(5)).map(|_| random.pick(&[1, 2, 3, 4, 5, 7])).collect()
}

fn filled(dtype: DType, layout: impl Into<TensorLayout>, seed: u64) -> Tensor {
    let mut tensor = Tensor::new(dtype, layout).expect("small");
    tensor.fill(Fill::Specials, seed);
    tensor
}

#[test]
fn what_numpy_saves_is_read_bit_for_bit() {
    let folder = tempfile::tempdir().expect("a folder");
    let list = numpy::run(SAVE, &[folder.path().to_str().expect("UTF-8")]);
    let random = &mut Random::new(30, 0);
    let mut read = 0;
    for line in list.lines() {
        let [name, shape, stem] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let (path, dtype) = (format!("{stem}.npy"), name.parse().expect("a type"));
        let m = npy::read(Path::new(&path), dtype).expect(line);
        assert_eq!(joined(m.shape()), shape, "{line}");
        let elements = fs::read(format!("{stem}.bin")).expect("exists");
        assert!(little_endian(&m) == elements, "{line}");
        assert!(m.guards().hold(), "{line}");
        // Into strides that the file does not have; no two coordinates share an element there.
        let layout = any_layout(random, m.shape());
        if layout.stride().iter().zip(layout.shape()).all(|(stride, extent)| *stride != 0 || *extent == 1) {
            let mut strided = Tensor::new(dtype, layout).expect("small");
            npy::open(Path::new(&path), dtype).expect(line).read_into(&mut strided).expect(line);
            assert!(little_endian(&strided) == elements && strided.guards().hold(), "{line} into {layout}");
        }
        read += 1;
    }
    assert_eq!(read, (8 * 5 + 3 * 4) * (9 * 3 + 1));
}

#[test]
fn what_is_written_is_what_numpy_saves_byte_for_byte() {
    let folder = tempfile::tempdir().expect("a folder");
    let random = &mut Random::new(31, 0);
    let mut lines = Vec::new();
    for dtype in DType::ALL {
        // What is buffered at once is 2^20 bytes; single bytes are as others.
        let (rows, long) =
            if dtype.bytes().0 > 1 { (1023, (1 << 20) / dtype.bytes().0 as i64 + 9) } else { (123, 2000) };
        let matrices = [(1, 1, 1), (3, 12, 12), (3, 12, 17), (rows, 511, 520), (1, 20_000, 20_000), (20_000, 1, 3)];
        let mut layouts: Vec<ViewLayout> =
            matrices.into_iter().map(|(m, n, ld)| ViewLayout::matrix([m, n], ld)).collect();
        let column_major = |shape: &[i64], stride: &[i64]| ViewLayout::strided(shape, stride).expect("a layout");
        layouts.extend([column_major(&[rows, 511], &[1, rows]), column_major(&[long, 2], &[3, 1])]);
        for _ in 0..60 {
            let shape = any_shape(random);
            layouts.push(any_layout(random, &shape));
        }
        for (i, layout) in layouts.into_iter().enumerate() {
            let m = filled(*dtype, layout, i as u64);
            let stem = format!("{}/{dtype}.{i}", folder.path().display());
            npy::write(Path::new(&format!("{stem}.npy")), &m).expect("writable");
            fs::write(format!("{stem}.bin"), little_endian(&m)).expect("writable");
            lines.push(format!("{dtype} {} {} {stem}", joined(layout.shape()), joined(layout.stride())));
        }
    }
    let list = folder.path().join("list");
    fs::write(&list, lines.join("\n")).expect("writable");
    let printed = numpy::run(COMPARE, &[list.to_str().expect("UTF-8")]);
    assert_eq!(printed.lines().count(), lines.len());
    let fortran = printed.lines().filter(|line| *line == "same fortran").count();
    assert!(fortran > 100 && fortran < lines.len() - 100, "{fortran} of {} in Fortran order", lines.len());
}

/// Of every type, rank and order: a file of the right size that is read as it was written, into any strides.
#[test]
fn what_is_written_is_read_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.npy");
    let random = &mut Random::new(32, 0);
    for i in 0..1500 {
        let shape = any_shape(random);
        let (from, into) = (any_layout(random, &shape), any_layout(random, &shape).distinct());
        let dtype = random.pick(DType::ALL);
        let written = filled(dtype, TensorLayout::from(from), i);
        npy::write(&path, &written).expect("writable");
        let bytes = fs::metadata(&path).expect("exists").len();
        assert_eq!(bytes % 64, written.size() * dtype.bytes().0 % 64, "{from}: a header is a multiple of 64 bytes");
        assert!(bytes > written.size() * dtype.bytes().0, "{from}");
        let array = npy::open(&path, dtype).expect("whole");
        assert_eq!(array.shape(), shape, "{from}");
        let read = npy::read(&path, dtype).expect("whole");
        assert_eq!((bits(&read), read.guards().hold()), (bits(&written), true), "{dtype} {from}");
        if into.shape() == shape {
            let mut other = Tensor::new(dtype, into).expect("small");
            array.read_into(&mut other).expect("one shape");
            assert_eq!((bits(&other), other.guards().hold()), (bits(&written), true), "{dtype} {from} into {into}");
        }
    }
}

#[test]
fn an_array_is_read_into_its_own_shape_and_type_only() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.npy");
    npy::write(&path, &filled(DType::F32, ViewLayout::row_major(&[12]).expect("rank 1"), 1)).expect("writable");
    let into = |dtype, shape: &[i64]| {
        let mut tensor = Tensor::new(dtype, ViewLayout::row_major(shape).expect("a layout")).expect("small");
        npy::open(&path, DType::F32).expect("whole").read_into(&mut tensor).map(|()| tensor.guards().hold())
    };
    assert!(into(DType::F32, &[1, 1, 12]).expect("extents of 1 in front"));
    let error = into(DType::F32, &[12, 1]).expect_err("a column").to_string();
    assert!(
        error.ends_with("the array f32 12:1 and Tensor f32 (12,1):(1,1) are not tensors of one type and shape"),
        "{error}"
    );
    assert!(into(DType::I32, &[12]).is_err(), "another type");
}

/// A device that is always full: never a success beside a file that is not whole.
#[cfg(target_os = "linux")]
#[test]
fn where_there_is_no_room_that_is_said() {
    let m = filled(DType::F32, TensorLayout::contiguous(3, 12), 1);
    let error = npy::write(Path::new("/dev/full"), &m).expect_err("full").to_string();
    assert!(error.starts_with("/dev/full: ") && error.contains("No space left"), "{error}");
    assert!(fs::metadata("/dev/full").is_ok_and(|info| !info.is_file()), "a device stays one");
}

#[cfg(unix)]
#[test]
fn what_a_link_points_to_is_replaced_and_not_the_link() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, link) = (folder.path().join("a.npy"), folder.path().join("link.npy"));
    fs::write(&file, b"old").expect("writable");
    std::os::unix::fs::symlink(&file, &link).expect("linked");
    npy::write(&link, &filled(DType::F32, TensorLayout::contiguous(3, 12), 1)).expect("writable");
    assert!(fs::symlink_metadata(&link).expect("exists").is_symlink());
    assert_eq!(npy::read(&file, DType::F32).expect("whole").shape(), [3, 12]);
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
