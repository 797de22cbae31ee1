"""SwiGLU of one product against torch: product, then silu(gate) * up. M 4096, K 4096, gate and up of 14,336 columns each, interleaved.

cutemplate emit gemm --arch sm_90a -s dtype=bf16 -s pairs=true -s 'epilogue=|gate, up| silu(gate) * up' --name pairs --out .
python3 benches/gated.py pairs_sm90a  # compiles pairs_sm90a.cuh with its `launch`; nvcc and $CUTLASS_PATH

With block scales: -s dtype=e4m3 -s promote=128 -s scale_a=1x128 -s scale_b=128x128 -s tile=128x128x128. A kernel without pairs is the product alone.
"""
import ctypes
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import torch

from turns import timed

M, N, K = [int(x) for x in os.environ.get("MNK", "4096,28672,4096").split(",")]


def compiled(name):
    with open(f"{name}.cuh") as file:
        text = file.read()
    pairs, scaled = "TilePairs" in text, "args.scalea" in text or "scalea;" in text
    scales = """
  args.scalea = sa; args.ldscalea = (k + 127) / 128; args.inc_scalea = 1;
  args.scaleb = sb; args.ldscaleb = 1; args.inc_scaleb = (k + 127) / 128;""" if scaled else ""
    launch = f"""
#include "{name}.cuh"
extern "C" int go(void* a, void* b, void* sa, void* sb, void* d, int m, int n, int k, void* stream)
{{
  cutemplate::{name}::Arguments args{{}};
  args.a = a; args.b = b; args.d = d;
  args.lda = k; args.ldb = k; args.ldd = {"n / 2" if pairs else "n"};
  args.m = m; args.n = n; args.k = k;{scales}
  return cutemplate::{name}::launch(args, nullptr, static_cast<cudaStream_t>(stream));
}}
"""
    with open(f"{name}_go.cu", "w") as file:
        file.write(launch)
    flags = "-O3 -DNDEBUG -std=c++17 -arch=sm_90a --expt-relaxed-constexpr -Xptxas -v -Xcompiler -fPIC -shared -I.".split()
    include = f"-I{os.environ['CUTLASS_PATH']}/include"
    done = subprocess.run(["nvcc", *flags, include, "-o", f"{name}.so", f"{name}_go.cu"], check=True, capture_output=True, text=True)
    print(name, [line.strip() for line in done.stderr.splitlines() if "spill" in line or "C75" in line or "Used" in line])
    return ctypes.CDLL(f"./{name}.so"), pairs, scaled


def silu_mul(gate, up):
    return torch.nn.functional.silu(gate) * up


def blocks_of(x, rows):
    """e4m3, and a scale for `rows` x 128 elements."""
    m, k = x.shape
    tiles = x.reshape(m // rows, rows, k // 128, 128)
    scales = tiles.abs().amax(dim=(1, 3)).float() / 448
    q = (tiles / scales[:, None, :, None]).reshape(m, k).to(torch.float8_e4m3fn)
    back = (q.float().reshape(m // rows, rows, k // 128, 128) * scales[:, None, :, None]).reshape(m, k)
    return q, scales.contiguous(), back


def main():
    torch.manual_seed(1)
    a = torch.randn(M, K, device="cuda").bfloat16()
    # (N,K): rows of gate and up in turns.
    b = (torch.randn(N, K, device="cuda") / K**0.5).bfloat16()
    halves = torch.cat([b[0::2], b[1::2]]).contiguous()
    (qa, sa, back_a), (qb, sb, back_b) = blocks_of(a.float(), 1), blocks_of(b.float(), 128)
    fused = torch.compile(silu_mul)

    def of_torch(function):
        y = a @ halves.T
        return function(y[:, : N // 2], y[:, N // 2 :])

    launches = {"torch": lambda: of_torch(silu_mul), "torch, compiled": lambda: of_torch(fused), "torch's product alone": lambda: a @ halves.T}
    with ThreadPoolExecutor(14) as at_once:
        kernels = list(at_once.map(compiled, sys.argv[1:]))
    for name, (library, pairs, scaled) in zip(sys.argv[1:], kernels):
        d = torch.full((M, N // 2 if pairs else N), float("nan"), device="cuda", dtype=torch.bfloat16)
        pointers = [qa, qb, sa, sb, d] if scaled else [a, b, a, a, d]

        def ours(library=library, pointers=pointers):
            stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
            assert library.go(*[ctypes.c_void_p(t.data_ptr()) for t in pointers], M, N, K, stream) == 0

        ours()
        torch.cuda.synchronize()
        wrong, rows = 0, slice(0, 512)
        x, w = (back_a, back_b) if scaled else (a.float(), b.float())
        y = x[rows].double() @ w.double().T
        sizes = x[rows].abs().double() @ w.abs().double().T
        lost = sizes * (0.018 if scaled else 2 * K * 2**-23)
        right, off = y, lost
        if pairs:
            gate, up, of_gate, of_up = y[:, 0::2], y[:, 1::2], lost[:, 0::2], lost[:, 1::2]
            right = silu_mul(gate, up)
            off = 1.1 * of_gate * (up.abs() + of_up) + torch.nn.functional.silu(gate).abs() * of_up
        found = d[rows].double()
        wrong = int((~((found - right).abs() <= off + right.abs() / 128 + 1e-6)).sum())
        print(f"{name}: {wrong} wrong of {right.numel()}, largest difference {float((found - right).abs().max()):.3g}")
        launches[name] = ours
    for name, time in (times := timed(launches)).items():
        print(f"{name}: {time * 1e3:.1f} us, {2 * M * N * K / time / 1e9:.1f} TFLOP/s, {times['torch'] / time:.3f} of torch's")


main()
