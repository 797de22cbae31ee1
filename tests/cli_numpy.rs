//! Contract: arrays that NumPy wrote go in, the tool runs the kernel on the CPU executor, and NumPy agrees bit for bit with
//! what comes out: three types, ragged, tiny, long and tall shapes, contiguous and padded.
#![cfg(feature = "cli")]

#[path = "support/numpy.rs"]
mod numpy;

/// Saves inputs, runs the tool, compares its output with NumPy's sum (bfloat16 by `ml_dtypes`).
const SCRIPT: &str = r#"
import subprocess, sys, numpy as np, ml_dtypes
tool, folder = sys.argv[1:]
rng = np.random.default_rng(7)
types = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
shapes = [(1, 1), (3, 12), (1023, 511), (256, 512), (1, 100000), (100000, 1), (2048, 2048)]
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
