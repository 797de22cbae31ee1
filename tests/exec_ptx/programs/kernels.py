"""Compiles kernels with Triton, for no GPU that is here, and writes what it takes to launch them: PTX, arrays, launch files.

    python3 kernels.py FOLDER

programs.json lists the launches; each has, of the arrays that it writes, what NumPy computes and how far from it they may be.
"""

import json
import sys
from pathlib import Path

import numpy as np
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget


@triton.jit
def matmul(a, b, c, m, n, k, lda, ldb, ldc, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PRECISION: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    at_a = a + rows[:, None] * lda + depth[None, :]
    at_b = b + depth[:, None] * ldb + columns[None, :]
    zero = tl.int32 if a.dtype.element_ty == tl.int8 else tl.float32
    sums = tl.zeros((BM, BN), dtype=zero)
    for first in range(0, k, BK):
        x = tl.load(at_a, mask=(rows[:, None] < m) & (first + depth[None, :] < k), other=0.0)
        y = tl.load(at_b, mask=(first + depth[:, None] < k) & (columns[None, :] < n), other=0.0)
        sums = tl.dot(x, y, sums, input_precision=PRECISION, out_dtype=zero)
        at_a += BK
        at_b += BK * ldb
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(c + rows[:, None] * ldc + columns[None, :], sums.to(c.dtype.element_ty), mask=inside)


@triton.jit
def described(a, b, c, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    sums = tl.zeros((BM, BN), dtype=tl.float32)
    for first in range(0, k, BK):
        sums = tl.dot(a.load([row, first]), b.load([column, first]).T, sums)
    c.store([row, column], sums.to(tl.float16))


@triton.jit
def attention(q, k, v, o, length, scale, L: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    rows = tl.program_id(0) * L + tl.arange(0, L)
    wide = tl.arange(0, D)
    x = tl.load(q + rows[:, None] * D + wide[None, :])
    most = tl.full((L,), float("-inf"), tl.float32)
    total = tl.zeros((L,), tl.float32)
    sums = tl.zeros((L, D), tl.float32)
    for first in range(0, length, N):
        at = first + tl.arange(0, N)
        y = tl.load(k + at[None, :] * D + wide[:, None])
        scores = tl.dot(x, y) * scale
        larger = tl.maximum(most, tl.max(scores, 1))
        weights = tl.exp2(scores - larger[:, None])
        shrink = tl.exp2(most - larger)
        total = total * shrink + tl.sum(weights, 1)
        z = tl.load(v + at[:, None] * D + wide[None, :])
        sums = tl.dot(weights.to(tl.float16), z, sums * shrink[:, None])
        most = larger
    tl.store(o + rows[:, None] * D + wide[None, :], sums / total[:, None])


@triton.jit
def softmax(x, y, columns, WIDE: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, WIDE)
    values = tl.load(x + row * columns + at, mask=at < columns, other=float("-inf"))
    powers = tl.exp(values - tl.max(values, 0))
    tl.store(y + row * columns + at, powers / tl.sum(powers, 0), mask=at < columns)


@triton.jit
def reductions(x, sums, places, running, sorted_rows, ROWS: tl.constexpr, WIDE: tl.constexpr):
    rows, at = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, WIDE)
    values = tl.load(x + rows[:, None] * WIDE + at[None, :])
    tl.store(sums + rows, tl.sum(values, 1))
    tl.store(places + rows, tl.argmax(values, 1))
    tl.store(running + rows[:, None] * WIDE + at[None, :], tl.cumsum(values, 1))
    tl.store(sorted_rows + rows[:, None] * WIDE + at[None, :], tl.sort(values, 1))


@triton.jit
def atomics(x, bins, totals, count, WIDE: tl.constexpr):
    at = tl.program_id(0) * WIDE + tl.arange(0, WIDE)
    values = tl.load(x + at, mask=at < count, other=0)
    tl.atomic_add(bins + values % 16, 1, mask=at < count)
    tl.atomic_max(totals, tl.max(values, 0))
    tl.atomic_add(totals + 1, tl.sum(values, 0), sem="acq_rel")


TYPES = {"fp16": np.float16, "bf16": np.uint16, "fp32": np.float32, "i8": np.int8, "i32": np.int32, "fp8e4nv": np.uint8}


class Programs:
    def __init__(self, folder):
        self.folder, self.listed, self.random = Path(folder), [], np.random.default_rng(7)

    def small(self, *shape):
        return self.random.integers(-2, 3, shape)

    def compiled(self, name, kernel, arch, signature, constants, **options):
        parameters = {**signature, **{key: "constexpr" for key in constants}}
        # Pointers, strides and extents of rows are multiples of 16, as they are for the arrays below.
        is_aligned = lambda key: parameters[key].startswith("*") or key in ("n", "k", "lda", "ldb", "ldc")
        aligned = {(i,): [["tt.divisibility", 16]] for i, key in enumerate(parameters) if is_aligned(key)}
        source = triton.compiler.ASTSource(kernel, parameters, constexprs=constants, attrs=aligned)
        made = triton.compile(source, target=GPUTarget("cuda", arch, 32), options=options)
        (self.folder / f"{name}.ptx").write_text(made.asm["ptx"])
        return made.metadata

    def launch(self, name, meta, grid, arguments, expected, within=0.0):
        """`arguments`: arrays, numbers as {type: value}, or whole entries; `expected`: of the written ones, by their place."""
        entries = []
        for place, argument in enumerate(arguments):
            if isinstance(argument, np.ndarray):
                np.save(self.folder / f"{name}_{place}.npy", argument)
                argument = {"npy": f"{name}_{place}.npy"}
            if place in expected:
                target = argument.get("tensor_map", argument)
                target["out"] = f"{name}_{place}_out.npy"
                np.save(self.folder / f"{name}_{place}_expected.npy", expected[place])
            entries.append(argument)
        # Triton's kernels take two pointers more than their source says.
        entries += [{"u64": 0}, {"u64": 0}]
        launch = {"ptx": f"{name}.ptx", "entry": meta.name, "grid": grid, "block": [meta.num_warps * 32], "dynamic_smem": meta.shared, "args": entries}
        outs = [{"out": f"{name}_{p}_out.npy", "expected": f"{name}_{p}_expected.npy", "type": str(e.dtype)} for p, e in expected.items()]
        self.listed.append({"name": name, "launch": launch, "outs": outs, "within": within})


def bits(values, ty):
    """Small integers as numbers of a type, of those that NumPy lacks as their bits."""
    if ty == "bf16":
        return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    if ty == "fp8e4nv":
        codes = np.array([0x00, 0x38, 0x40], dtype=np.uint8)
        return codes[np.abs(values)] | (values < 0).astype(np.uint8) << 7
    return values.astype(TYPES[ty])


def products(programs):
    for name, arch, ty, to, blocks, precision, options in [
        ("wgmma_f16", 90, "fp16", "fp16", (128, 128, 64), "tf32", {"num_warps": 4, "num_stages": 3}),
        ("wgmma_bf16", 90, "bf16", "fp32", (64, 128, 64), "tf32", {"num_warps": 4, "num_stages": 4}),
        ("wgmma_tf32", 90, "fp32", "fp32", (64, 64, 32), "tf32", {"num_warps": 4, "num_stages": 2}),
        ("wgmma_f8", 90, "fp8e4nv", "fp32", (128, 64, 64), "tf32", {"num_warps": 8, "num_stages": 3}),
        ("wgmma_i8", 90, "i8", "i32", (64, 64, 64), "tf32", {"num_warps": 4, "num_stages": 3}),
        ("mma_f16", 80, "fp16", "fp32", (64, 64, 32), "tf32", {"num_warps": 4, "num_stages": 3}),
        ("mma_tf32", 80, "fp32", "fp32", (64, 32, 32), "tf32", {"num_warps": 2, "num_stages": 2}),
        ("mma_i8", 80, "i8", "i32", (64, 64, 64), "tf32", {"num_warps": 4, "num_stages": 4}),
        ("fma_f32", 80, "fp32", "fp32", (32, 32, 16), "ieee", {"num_warps": 4, "num_stages": 2}),
    ]:
        (bm, bn, bk), (m, n, k) = blocks, (200, 176, 304)
        signature = {"a": f"*{ty}", "b": f"*{ty}", "c": f"*{to}", **dict.fromkeys(["m", "n", "k", "lda", "ldb", "ldc"], "i32")}
        constants = {"BM": bm, "BN": bn, "BK": bk, "PRECISION": precision}
        meta = programs.compiled(name, matmul, arch, signature, constants, **options)
        a, b = programs.small(m, k), programs.small(k, n)
        numbers = [{"i32": v} for v in (m, n, k, k, n, n)]
        arrays = [bits(a, ty), bits(b, ty), np.zeros((m, n), TYPES[to])]
        grid = [-(-m // bm), -(-n // bn)]
        programs.launch(name, meta, grid, arrays + numbers, {2: (a @ b).astype(TYPES[to])})


def from_descriptions(programs):
    (m, n, k), (bm, bn, bk) = (256, 384, 320), (128, 128, 64)
    tensor = lambda *tile: f"tensordesc<fp16{list(tile)}>"
    signature = {"a": tensor(bm, bk), "b": tensor(bn, bk), "c": tensor(bm, bn), "k": "i32"}
    meta = programs.compiled("described", described, 90, signature, {"BM": bm, "BN": bn, "BK": bk}, num_warps=8, num_stages=3)
    a, b = programs.small(m, k), programs.small(n, k)
    arguments, places = [], []
    for name, array, how in zip("abc", [a, b, np.zeros((m, n))], meta.tensordesc_meta):
        np.save(programs.folder / f"described_{name}.npy", array.astype(np.float16))
        rows, columns = array.shape
        of = {"npy": f"described_{name}.npy", "dtype": "f16", "dims": [columns, rows], "strides": [2 * columns]}
        places.append(len(arguments))
        # The host passes a map, the extents and the strides.
        tiled = {"box": how["block_size"][::-1], "swizzle": [0, 32, 64, 128][how["swizzle"]]}
        arguments += [{"tensor_map": {**of, **tiled}}, {"i32": rows}, {"i32": columns}, {"i64": columns}, {"i64": 1}]
    arguments.append({"i32": k})
    programs.launch("described", meta, [m // bm, n // bn], arguments, {places[2]: (a @ b.T).astype(np.float16)})


def reduced(programs):
    x = programs.random.standard_normal((7, 781)).astype(np.float32)
    meta = programs.compiled("softmax", softmax, 90, {"x": "*fp32", "y": "*fp32", "columns": "i32"}, {"WIDE": 1024}, num_warps=4)
    powers = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    expected = (powers / powers.sum(1, keepdims=True)).astype(np.float32)
    programs.launch("softmax", meta, [7], [x, np.zeros_like(x), {"i32": 781}], {1: expected}, 1e-6)

    # Each row has its numbers once, so that the largest has one place.
    x = np.stack([programs.random.permutation(256) - 100 for _ in range(8)]).astype(np.float32)
    signature = {"x": "*fp32", "sums": "*fp32", "places": "*i32", "running": "*fp32", "sorted_rows": "*fp32"}
    meta = programs.compiled("reductions", reductions, 90, signature, {"ROWS": 4, "WIDE": 256}, num_warps=4)
    expected = {1: x.sum(1), 2: x.argmax(1).astype(np.int32), 3: x.cumsum(1, dtype=np.float32), 4: np.sort(x, 1)}
    arrays = [x] + [np.zeros_like(e) for e in expected.values()]
    programs.launch("reductions", meta, [2], arrays, expected)

    x = programs.random.integers(0, 1000, 3000).astype(np.int32)
    signature = {"x": "*i32", "bins": "*i32", "totals": "*i32", "count": "i32"}
    meta = programs.compiled("atomics", atomics, 90, signature, {"WIDE": 256}, num_warps=4)
    expected = {1: np.bincount(x % 16, minlength=16).astype(np.int32), 2: np.array([x.max(), x.sum()], np.int32)}
    arrays = [x, np.zeros(16, np.int32), np.zeros(2, np.int32)]
    programs.launch("atomics", meta, [12], arrays + [{"i32": 3000}], expected)


def attended(programs):
    length, wide = 256, 64
    q, k, v = (programs.random.standard_normal((length, wide)).astype(np.float16) for _ in range(3))
    signature = {"q": "*fp16", "k": "*fp16", "v": "*fp16", "o": "*fp32", "length": "i32", "scale": "fp32"}
    for arch in (80, 90):
        name = f"attention_{arch}"
        meta = programs.compiled(name, attention, arch, signature, {"L": 64, "N": 64, "D": wide}, num_warps=4, num_stages=3)
        # Powers of two: the scale has the logarithm in it.
        scores = q.astype(np.float64) @ k.T.astype(np.float64) * (0.125 * np.log2(np.e))
        weights = np.exp2(scores - scores.max(1, keepdims=True))
        expected = (weights / weights.sum(1, keepdims=True)) @ v.astype(np.float64)
        numbers = [{"i32": length}, {"f32": 0.125 * np.log2(np.e)}]
        arrays = [q, k, v, np.zeros((length, wide), np.float32)]
        programs.launch(name, meta, [length // 64], arrays + numbers, {3: expected.astype(np.float32)}, 2e-3)


def main():
    programs = Programs(sys.argv[1])
    for make in (products, from_descriptions, reduced, attended):
        make(programs)
    (programs.folder / "programs.json").write_text(json.dumps(programs.listed, indent=1))


if __name__ == "__main__":
    main()
