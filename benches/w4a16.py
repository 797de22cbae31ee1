"""4-bit weights against bf16: `w4a16`, our bf16 `gemm` and torch's, in one process and in turns, few rows of A.

cutemplate emit gemm --arch sm_90a -s dtype=bf16 -s out=bf16 -s tile=64x64x64 -s stages=8 -s cluster=1x1 --name bf16 --out .
cutemplate emit gemm --arch sm_90a -s dtype=bf16 -s out=bf16 -s tile=64x64x64 -s stages=8 -s cluster=1x1 -s split_k=2 --name split --out .
cutemplate emit w4a16 --arch sm_90a --name w4 --out .
python3 benches/w4a16.py bf16_sm90a split_sm90a w4_sm90a   # compiles the headers with their `launch`; nvcc and $CUTLASS_PATH

Further names are further kernels: `w4..` of w4a16, others of gemm. The fastest gemm of a problem counts. 16x24576x7168 is a problem to
measure in place of the usual ones. Each launch of a CUDA graph has other weights, more than L2 holds.
"""
import ctypes
import os
import re
import statistics
import subprocess
import sys

import torch

PROBLEMS = [(m, n, 7168) for n in (24576, 7168, 2112) for m in (1, 8, 16, 64)]
BYTES = 256 << 20  # of packed weights that a graph reads, at least
COMMON = """
#include "{name}.cuh"
extern "C" size_t {name}_go(void** t, int m, int n, int k, void* workspace, void* stream)
{{
  cutemplate::{name}::Arguments args{{}};
  args.a = t[0]; args.lda = k; args.d = t[1]; args.ldd = n; args.m = m; args.n = n; args.k = k;
  {own}
  if (workspace == nullptr) {{
    return cutemplate::{name}::get_workspace_size(args);
  }}
  return cutemplate::{name}::launch(args, workspace, static_cast<cudaStream_t>(stream));
}}
"""
BF16 = "args.b = t[2]; args.ldb = k;"
W4 = "args.w = t[2]; args.ldw = k / 8; args.w_row = k / 8; args.scales = t[3]; args.ldscales = n;"
ZEROS = " args.zeros = t[4]; args.ldzeros = n;"


class Kernel:
    def __init__(self, name):
        with open(f"{name}.cuh") as file:
            text = file.read()
        self.name, self.packed = name, name.startswith("w4")
        self.group = int(re.search(r"group: (\d+)", text).group(1)) if self.packed else 0
        self.zeros = "zeros: true" in text

    def build(self):
        own = (W4 + (ZEROS if self.zeros else "")) if self.packed else BF16
        with open(f"{self.name}_go.cu", "w") as file:
            file.write(COMMON.format(name=self.name, own=own))
        flags = "-O3 -DNDEBUG -std=c++17 -arch=sm_90a --expt-relaxed-constexpr -Xcompiler -fPIC -shared -I.".split()
        include = f"-I{os.environ['CUTLASS_PATH']}/include"
        return subprocess.Popen(["nvcc", *flags, include, "-o", f"{self.name}.so", f"{self.name}_go.cu"])

    def load(self):
        self.go = getattr(ctypes.CDLL(f"./{self.name}.so"), f"{self.name}_go")
        self.go.restype = ctypes.c_size_t

    def launch(self, tensors, m, n, k, workspace):
        pointers = (ctypes.c_void_p * len(tensors))(*[tensor.data_ptr() for tensor in tensors])
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        at = ctypes.c_void_p(workspace.data_ptr() if workspace is not None else 0)
        return self.go(pointers, m, n, k, at, stream)


def weights_of(packed, n, k):
    """The numbers from 0 to 15 that a packed W stands for, (N,K)."""
    row, column = torch.arange(64).view(-1, 1), torch.arange(16).view(1, -1)
    of_row = row % 2 * 128 + row // 2 % 2 * 2 + row // 4 % 4 * 8 + row // 16 * 256
    place = (of_row + column % 2 * 4 + column // 2 % 4 * 32 + column // 8).cuda()
    words = packed.view(n // 64, k // 16, 128)
    nibbles = torch.stack([words >> 4 * i & 15 for i in range(8)], dim=-1).view(n // 64, k // 16, 1024)
    return nibbles[:, :, place.flatten()].view(n // 64, k // 16, 64, 16).permute(0, 2, 1, 3).reshape(n, k)


KEPT = []  # what graphs read and write, for as long as they may be launched


def of_graph(launches):
    launches[0]()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for launch in launches:
            launch()
    KEPT.append((graph, launches))
    return graph


def timed(graphs, launches, rounds=13):
    times = {name: [] for name in graphs}
    for _ in range(rounds):
        for name, graph in graphs.items():
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            graph.replay()
            end.record()
            torch.cuda.synchronize()
            times[name].append(begin.elapsed_time(end) / launches * 1e3)
    return {name: statistics.median(all[3:]) for name, all in times.items()}


def measured(kernels, m, n, k):
    copies = max(4, BYTES // (n * k // 2))
    a = torch.randn(m, k, device="cuda").bfloat16()
    d = torch.full((m, n), float("nan"), device="cuda", dtype=torch.bfloat16)
    packed = [torch.randint(-(2**31), 2**31, (n, k // 8), device="cuda", dtype=torch.int32) for _ in range(copies)]
    scales = [torch.rand(k // 32, n, device="cuda").bfloat16() for _ in range(copies)]
    zeros = [torch.randint(0, 16, (k // 32, n), device="cuda", dtype=torch.uint8) for _ in range(copies)]
    dense = [torch.randn(n, k, device="cuda", dtype=torch.bfloat16) for _ in range(copies)]
    graphs, wrong = {}, {}
    for kernel in kernels:
        sets = [[a, d, *own] for own in (zip(packed, scales, zeros) if kernel.packed else zip(dense))]
        size = kernel.launch(sets[0], m, n, k, None)
        workspace = torch.full((max(size, 256) // 4 + 1,), float("nan"), device="cuda")
        b = dense[0]
        if kernel.packed:
            each = (torch.arange(k, device="cuda") // kernel.group)
            zero = zeros[0][each].T.int() if kernel.zeros else 8
            b = ((weights_of(packed[0], n, k) - zero).float() * scales[0][each].T.float()).bfloat16()
        d.fill_(float("nan"))
        failed = kernel.launch(sets[0], m, n, k, workspace)
        assert failed == 0, (kernel.name, failed)
        right, sizes = a.double() @ b.double().T, a.double().abs() @ b.double().abs().T
        bound = 2**-8 * right.abs() + 2 * k * 2**-23 * sizes
        wrong[kernel.name] = int((~((d.double() - right).abs() <= bound)).sum())
        graphs[kernel.name] = of_graph([lambda t=t, w=workspace, of=kernel: of.launch(t, m, n, k, w) for t in sets])
    graphs["torch"] = of_graph([lambda b=b: torch.mm(a, b.T, out=d) for b in dense])
    return timed(graphs, copies), wrong


def main():
    problems = [tuple(map(int, name.split("x"))) for name in sys.argv[1:] if re.fullmatch(r"\d+x\d+x\d+", name)]
    kernels = [Kernel(name) for name in sys.argv[1:] if not name[0].isdigit()]
    assert all([process.wait() == 0 for process in [kernel.build() for kernel in kernels]])
    for kernel in kernels:
        kernel.load()
    for m, n, k in problems or PROBLEMS:
        times, wrong = measured(kernels, m, n, k)
        gemm = min((times[kernel.name], kernel.name) for kernel in kernels if not kernel.packed)
        print(f"M {m} N {n} K {k}: torch {times['torch']:.2f} us, gemm {gemm[0]:.2f} us ({gemm[1]})", flush=True)
        for kernel in kernels:
            time = times[kernel.name]
            read = n * k // 2 + n * k // kernel.group * 2 if kernel.packed else 2 * n * k
            print(f"  {kernel.name:16} {time:8.2f} us  {read / time / 1e6:6.3f} TB/s  {gemm[0] / time:6.2f} of gemm's  "
                  f"{times['torch'] / time:6.2f} of torch's  {wrong[kernel.name]} wrong", flush=True)


main()
