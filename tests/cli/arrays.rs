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
    let Some(said) = numpy::run(SCRIPT, &arguments) else { return };
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
    let Some(said) = numpy::run(STRIDES, &arguments) else { return };
    assert_eq!(said.lines().filter(|l| l.starts_with("agrees")).count(), 3 + 2 * (4 + 3 + 2 + 1) + 1 + 4);
}
