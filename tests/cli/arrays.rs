//! Contract: arrays that NumPy wrote go in, the tool runs the kernel on the CPU executor, and NumPy agrees bit for bit with
//! what comes out: three types, ragged, tiny, long and tall shapes, contiguous and padded.
#![cfg(feature = "cli")]

use crate::numpy;

/// Saves inputs, runs the tool, compares its output with NumPy's sum (bfloat16 by `ml_dtypes`).
const SCRIPT: &str = r#"
import subprocess, sys, numpy as np, ml_dtypes
tool, folder = sys.argv[1:]
rng = np.random.default_rng(7)
types = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
shapes = [(1, 1), (3, 12), (1023, 511), (256, 512), (1, 100000), (100000, 1), (832, 808)]
for name, dtype in types.items():
    for m, n in shapes:
        a, b = (rng.standard_normal((m, n)).astype(dtype) for _ in "ab")
        np.save(folder + "/a.npy", a)
        np.save(folder + "/b.npy", b)
        for ld in [n, n + 5]:
            run = [tool, "run", "elementwise_add", "--set", "dtype=" + name, "--on", "cpu", "--ld", str(ld),
                   "--input", folder + "/a.npy", "--input", folder + "/b.npy", "--output", folder + "/c.npy"]
            done = subprocess.run(run, capture_output=True, text=True)
            assert done.returncode == 0, (run, done.stdout, done.stderr)
            c = np.load(folder + "/c.npy")
            assert c.shape == (m, n) and c.itemsize == a.itemsize, (run, c.dtype)
            assert c.tobytes() == (a + b).tobytes(), (name, m, n, ld)
            print("agrees", name, m, n, ld)
"#;

#[test]
fn numpy_agrees_bit_for_bit() {
    let folder = tempfile::tempdir().expect("a folder");
    let arguments = [env!("CARGO_BIN_EXE_cutemplate"), folder.path().to_str().expect("UTF-8")];
    let said = numpy::run(SCRIPT, &arguments);
    assert_eq!(said.lines().filter(|l| l.starts_with("agrees")).count(), 3 * 7 * 2);
}

/// Outputs of any strides, inputs in any order: what comes out is what NumPy computes, in a file of the right size.
const STRIDES: &str = r#"
import itertools, os, subprocess, sys, numpy as np
tool, folder = sys.argv[1:]
rng = np.random.default_rng(8)

def run(what, inputs, expected, fortran=None):
    files = []
    for i, a in enumerate(inputs):
        np.save(f"{folder}/{i}.npy", a)
        files += ["--input", f"{folder}/{i}.npy"]
    out = folder + "/y.npy"
    if os.path.exists(out):
        os.remove(out)
    done = subprocess.run([tool, "run", *what, "--on", "cpu", *files, "--output", out], capture_output=True, text=True)
    assert done.returncode == 0, (what, done.stdout, done.stderr)
    y = np.load(out)
    assert y.shape == expected.shape and y.tobytes() == expected.tobytes(), (what, y.shape, expected.shape)
    assert os.path.getsize(out) % 64 == expected.nbytes % 64 and os.path.getsize(out) > expected.nbytes, what
    if fortran is not None:
        assert (b"'fortran_order': True" in open(out, "rb").read(128)) == fortran, (what, fortran)
    print("agrees", what)

def orders(a):
    return [a, np.asfortranarray(a)] if a.ndim > 1 else [a]

# One kernel for each rank; strides of outputs are those of the rows, of the columns, and neither.
applied = [
    ("f32:1", "f32:1", [(1,), (7,), (1000,)], False),
    ("f32:(?,1)", "f32:(1,?)", [(30, 20), (1, 9), (9, 1), (129, 65)], None),
    ("f16:(?,?,1)", "f32:(?,1,?)", [(3, 5, 7), (1, 4, 4), (17, 33, 2)], None),
    ("i32:(?,?,?,1)", "i32:(1,?,?,?)", [(2, 3, 4, 5), (1, 2, 1, 3)], None),
    ("f32:(?,?,?,?,1)", "f16:(?,?,?,?,1)", [(2, 3, 2, 3, 4)], False),
]
types = {"f32": np.float32, "f16": np.float16, "i32": np.int32}
for of_in, of_out, shapes, fortran in applied:
    for shape in shapes:
        a = rng.integers(-1000, 1000, size=shape).astype(types[of_in[:3]])
        for a in orders(a):
            what = ["elementwise_apply", "--set", "expr=a + 1", "--set", "in=" + of_in, "--set", "out=" + of_out]
            if of_in == "f32:(?,1)":
                fortran = min(shape) > 1
            run(what, [a], (a.astype(types[of_out[:3]]) + 1).astype(types[of_out[:3]]), fortran)

# Fewer axes than the tensor has modes: extents of 1 in front. A row for all rows.
row = rng.integers(-9, 9, size=(33,)).astype(np.float32)
run(["elementwise_apply", "--set", "expr=a + 1", "--set", "in=f32:(?,1)", "--set", "out=f32:(1,?)"], [row], row[None, :] + 1)

# Products, also of batches, whose D is in neither order.
for settings, epilogue, a, b in [
    (["variant=naive", "batched=true", "epilogue=a"], lambda product: product, (13, 7, 3), (7, 9, 3)),
    (["variant=naive", "a=col", "b=col", "epilogue=relu(a)"], lambda product: np.maximum(product, 0), (13, 7), (7, 9)),
]:
    what = ["sgemm", *itertools.chain.from_iterable(("--set", s) for s in settings)]
    for x, y in zip(*(orders(rng.integers(-8, 8, size=s).astype(np.float32)) for s in (a, b))):
        run(what, [x, y], np.ascontiguousarray(epilogue(np.einsum("mk...,kn...->mn...", x, y))))
"#;

#[test]
fn outputs_of_any_strides_are_what_numpy_computes() {
    let folder = tempfile::tempdir().expect("a folder");
    let arguments = [env!("CARGO_BIN_EXE_cutemplate"), folder.path().to_str().expect("UTF-8")];
    let said = numpy::run(STRIDES, &arguments);
    assert_eq!(said.lines().filter(|l| l.starts_with("agrees")).count(), 3 + 2 * (4 + 3 + 2 + 1) + 1 + 4);
}

/// Arrays of the shape that they have, where the kernel has stride 0; empty ones; and those that do not fit.
const SHAPES: &str = r#"
import os, subprocess, sys, numpy as np
tool, folder = sys.argv[1:]
rng = np.random.default_rng(9)

def tool_run(what, inputs):
    files = []
    for i, a in enumerate(inputs):
        np.save(f"{folder}/{i}.npy", a)
        files += ["--input", f"{folder}/{i}.npy"]
    run = [tool, "run", *what, "--on", "cpu", *files, "--output", folder + "/y.npy"]
    return subprocess.run(run, capture_output=True, text=True)

def agrees(what, inputs, expected):
    if os.path.exists(folder + "/y.npy"):
        os.remove(folder + "/y.npy")
    done = tool_run(what, inputs)
    assert done.returncode == 0, (what, [a.shape for a in inputs], done.stdout, done.stderr)
    y = np.load(folder + "/y.npy")
    assert y.shape == expected.shape and (y == expected).all(), (what, [a.shape for a in inputs], y, expected)
    print("agrees", what, [a.shape for a in inputs])

def refused(what, inputs, message):
    done = tool_run(what, inputs)
    assert done.returncode == 1 and message in done.stderr, (what, done.returncode, done.stderr)
    print("refused", message)

def whole(*shape):
    return rng.integers(-8, 8, size=shape).astype(np.float32)

def settings(family, *of):
    return [family] + [word for setting in of for word in ("--set", setting)]

a, b = whole(5, 7), whole(7, 8)
row, column, one = whole(1, 8), whole(5, 1), whole(1, 1)
naive = "variant=naive"
for strides, shapes in [
    ("(0,1)", [row, row[0], np.broadcast_to(row, (5, 8))]),
    ("(?,0)", [column, column[:, 0], np.broadcast_to(column, (5, 8))]),
    ("(0,0)", [one, one[0], one[0, 0], np.broadcast_to(one, (5, 8))]),
]:
    what = settings("sgemm", naive, "epilogue=|a, c, x| a + x", "aux=f32:" + strides)
    for aux in shapes:
        agrees(what, [a, b, aux], a @ b + shapes[0])
what = settings("sgemm", naive, "epilogue=|a, c, x| a + x", "aux=f32:(0,1)")
refused(what, [a, b, whole(7)], "0/2.npy is 7, and a problem of 5x8x7 needs 5x8 or 1x8 or 8".replace("0/", ""))
refused(what, [a, b, whole(5, 8)], "with different elements where (5,8):(0,1) has stride 0")

# Batches: an array of one matrix is that of all of them, and axes stay in their order.
batched = settings("sgemm", naive, "batched=true", "epilogue=a")
a, b = whole(5, 7, 3), whole(7, 8, 3)
for x, y in [(a, b), (a, b[:, :, :1]), (a, b[:, :, 0]), (a[:, :, 0], b), (a[:, :, 0], b[:, :, 0])]:
    x3, y3 = (z if z.ndim == 3 else z[:, :, None] for z in (x, y))
    agrees(batched, [x, y], np.einsum("mkl,knl->mnl", *np.broadcast_arrays(x3, x3)[:1], y3) if x3.shape[2] == y3.shape[2]
           else np.stack([x3[:, :, min(l, x3.shape[2] - 1)] @ y3[:, :, min(l, y3.shape[2] - 1)] for l in range(3)], axis=2))
refused(batched, [a, whole(8, 7)], "needs 7x7x3 or 7x7x1 or 7x7")
what = settings("elementwise_apply", "expr=a + b", "in=f32:(?,?,1), f32:(?,1,0)", "out=f32:(?,?,1)")
a, b = whole(3, 4, 5), whole(3, 4)
agrees(what, [a, b], a + b[:, :, None])
agrees(what, [a, b[:, :, None]], a + b[:, :, None])

# Nothing to add up is an epilogue of 0; nothing to write is right.
nothing = settings("sgemm", naive, "epilogue=|a| a + 2")
agrees(nothing, [whole(5, 0), whole(0, 8)], np.full((5, 8), 2, np.float32))
agrees(nothing, [whole(0, 7), whole(7, 8)], np.zeros((0, 8), np.float32))
agrees(nothing, [whole(5, 7), whole(7, 0)], np.zeros((5, 0), np.float32))
agrees(settings("elementwise_apply", "expr=a + 1", "in=f32:(?,1)", "out=f32:(?,1)"), [whole(0, 9)], np.zeros((0, 9), np.float32))
agrees(settings("sum", "in=f32:(?,1)"), [whole(5, 0)], np.zeros(5, np.float32))
"#;

#[test]
fn arrays_have_the_shape_that_they_have() {
    let folder = tempfile::tempdir().expect("a folder");
    let arguments = [env!("CARGO_BIN_EXE_cutemplate"), folder.path().to_str().expect("UTF-8")];
    let said = numpy::run(SHAPES, &arguments);
    assert_eq!(said.lines().filter(|l| l.starts_with("agrees")).count(), 10 + 5 + 2 + 5);
    assert_eq!(said.lines().filter(|l| l.starts_with("refused")).count(), 3);
}
