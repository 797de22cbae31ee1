"""Products of groups of rows against torch._grouped_mm, in one process and in turns: bf16, 128 groups, K 2048, N 1536, 65,536 rows.

cutemplate emit gemm --arch sm_90a -s dtype=bf16 -s groups=rows -s schedule=pingpong -s tile=128x192x64 -s cluster=1x1 --name rows --out .
python3 benches/grouped_mm.py rows_sm90a   # compiles rows_sm90a.cuh with its `launch`; nvcc and $CUTLASS_PATH
"""
import ctypes
import os
import subprocess
import sys

import torch

from turns import timed

NAME = sys.argv[1]
GROUPS, K, N, ROWS = 128, 2048, 1536, 65536
LAUNCH = f"""
#include "{NAME}.cuh"
extern "C" int go(void* a, void* b, void* offsets, void* d, int m, int n, int k, int l, void* stream)
{{
  cutemplate::{NAME}::Arguments args{{}};
  args.a = a; args.b = b; args.offsets = offsets; args.d = d;
  args.lda = k; args.ldb = k; args.batch_b = int64_t(n) * k; args.ldd = n;
  args.m = m; args.n = n; args.k = k; args.l = l;
  return cutemplate::{NAME}::launch(args, nullptr, static_cast<cudaStream_t>(stream));
}}
"""


def compiled():
    with open(f"{NAME}_go.cu", "w") as file:
        file.write(LAUNCH)
    flags = "-O3 -DNDEBUG -std=c++17 -arch=sm_90a --expt-relaxed-constexpr -Xcompiler -fPIC -shared -I.".split()
    include = f"-I{os.environ['CUTLASS_PATH']}/include"
    subprocess.run(["nvcc", *flags, include, "-o", f"{NAME}.so", f"{NAME}_go.cu"], check=True)
    return ctypes.CDLL(f"./{NAME}.so")


def rows_of(kind):
    random = torch.Generator().manual_seed(7)
    weights = {
        "even": lambda: torch.ones(GROUPS),
        "mild": lambda: torch.rand(GROUPS, generator=random) + 0.5,
        "skewed": lambda: torch.rand(GROUPS, generator=random) ** 4,
        "zipf": lambda: (1.0 / torch.arange(1, GROUPS + 1).float())[torch.randperm(GROUPS, generator=random)],
    }[kind]()
    rows = (weights / weights.sum() * ROWS).floor().int()
    rows[rows.argmax()] += ROWS - rows.sum()
    return rows.cuda().cumsum(0).int()


def main():
    library = compiled()
    torch.manual_seed(1)
    a = torch.randn(ROWS, K, device="cuda").bfloat16()
    b = torch.randn(GROUPS, N, K, device="cuda").bfloat16()
    for kind in ["even", "mild", "skewed", "zipf"]:
        offsets, d = rows_of(kind), torch.full((ROWS, N), float("nan"), device="cuda", dtype=torch.bfloat16)

        def ours():
            pointers = [ctypes.c_void_p(tensor.data_ptr()) for tensor in (a, b, offsets, d)]
            stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
            assert library.go(*pointers, ROWS, N, K, GROUPS, stream) == 0

        def torch_s():
            return torch._grouped_mm(a, b.transpose(-2, -1), offs=offsets, out_dtype=torch.bfloat16)

        ours()
        right, found = torch_s().float(), d.float()
        # Both are sums of K rounded terms, rounded to 8 bits.
        sizes = torch._grouped_mm(a.abs(), b.abs().transpose(-2, -1), offs=offsets, out_dtype=torch.bfloat16).float()
        bound = 2 ** -7 * right.abs() + 2 * K * 2 ** -23 * 1.01 * sizes
        wrong = int((~((found - right).abs() <= bound)).sum())
        times = timed({"torch": torch_s, "ours": ours})
        rate = 2 * ROWS * K * N / times["ours"] / 1e9
        print(f"{kind}: {wrong} wrong, {times['ours'] * 1e3:.1f} us, {rate:.1f} TFLOP/s, {times['torch'] / times['ours']:.3f} of torch's")


main()
