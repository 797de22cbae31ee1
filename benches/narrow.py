"""Products of 8-bit elements against torch's, in one process and in turns: scales of tensors, rows and channels, blocks, groups.

cutemplate emit gemm --arch sm_90a -s dtype=e4m3 .. --name rows_e4m3 --out .
python3 benches/narrow.py rows_e4m3_sm90a ..   # compiles the headers with their `launch`; nvcc and $CUTLASS_PATH

What a header's arguments are says what it is compared with. D is compared with a product in f32 of the same numbers: integers bitwise.
"""
import ctypes
import os
import re
import statistics
import subprocess
import sys
import time

import torch

DENSE = {
    "e4m3": [(4096, 4096, 4096), (8192, 8192, 8192), (4096, 4096, 16384), (4096, 7168, 16384), (4096, 24576, 1536)],
    "i8": [(4096, 4096, 4096), (8192, 8192, 8192)],
}
GROUPED = [(4, 32768, 4096, 7168), (32, 32768, 4096, 2048), (128, 65536, 1536, 2048)]  # groups, rows, N, K
PLACES = {"first": 0, "second": 1, "third": 2, "batch": 2}
TYPES = {"e4m3": torch.float8_e4m3fn, "i8": torch.int8, "bf16": torch.bfloat16, "i32": torch.int32, "f32": torch.float32}


class Kernel:
    """A header with its `launch`; `fields` are those of its arguments: type, name, tensor or extent, mode."""

    def __init__(self, name):
        self.name = name
        with open(f"{name}.cuh") as file:
            own = re.search(r"struct Arguments \{(.*?)\n\};", file.read(), re.S).group(1)
        self.tensors, self.fields = {}, []
        for line in own.strip().splitlines():
            declared, comment = line.strip().split("//", 1)
            kind, field = declared.rstrip("; ").rsplit(" ", 1)
            comment = comment.strip()
            if "void" in kind:
                tensor, dtype = comment.split(", ")
                self.tensors[tensor] = dtype
                self.fields.append(("pointer", field, tensor, 0))
            elif of := re.search(r"from one coordinate of the (\w+)(?: mode)? to the next, in (\w+)", comment):
                self.fields.append(("stride", field, of.group(2), PLACES[of.group(1)]))
            else:
                self.fields.append(("extent", field, comment[0], 0))

    def build(self):
        types = {"pointer": "void*", "stride": "int64_t", "extent": "int"}
        takes = "".join(f", {types[kind]} {field}" for kind, field, _, _ in self.fields)
        sets = "".join(f"  args.{field} = {field};\n" for _, field, _, _ in self.fields)
        with open(f"{self.name}_go.cu", "w") as file:
            file.write(
                f'#include "{self.name}.cuh"\nextern "C" int {self.name}_go(void* stream{takes})\n{{\n'
                f"  cutemplate::{self.name}::Arguments args{{}};\n{sets}"
                f"  return cutemplate::{self.name}::launch(args, nullptr, static_cast<cudaStream_t>(stream));\n}}\n"
            )
        flags = "-O3 -DNDEBUG -std=c++17 -arch=sm_90a --expt-relaxed-constexpr -Xcompiler -fPIC -shared -I.".split()
        include = f"-I{os.environ['CUTLASS_PATH']}/include"
        return subprocess.Popen(["nvcc", *flags, include, "-o", f"{self.name}.so", f"{self.name}_go.cu"])

    def load(self):
        self.go = getattr(ctypes.CDLL(f"./{self.name}.so"), f"{self.name}_go")

    def launch(self, tensors, extents):
        """A call without arguments, which keeps its tensors."""
        values = []
        for kind, _, what, mode in self.fields:
            if kind == "pointer":
                values.append(ctypes.c_void_p(tensors[what].data_ptr()))
            elif kind == "stride":
                values.append(ctypes.c_int64(tensors[what].stride(mode)))
            else:
                values.append(ctypes.c_int(extents[what]))
        return lambda _=tensors: self.go(ctypes.c_void_p(torch.cuda.current_stream().cuda_stream), *values)


def of_graph(launch, at_once):
    launch()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(at_once):
            launch()
    return graph


def timed(launches, rounds=10, at_once=4, rest=0.03):
    """Medians of graphs of some launches in turn, in another order each round, in us a launch."""
    graphs = [(name, of_graph(launch, at_once)) for name, launch in launches.items()]
    times = {name: [] for name in launches}
    for number in range(rounds):
        first = number % len(graphs)
        for name, graph in graphs[first:] + graphs[:first]:
            time.sleep(rest)
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            graph.replay()
            end.record()
            torch.cuda.synchronize()
            times[name].append(begin.elapsed_time(end) / at_once * 1e3)
    return {name: statistics.median(all[2:]) for name, all in times.items()}


def narrow(dtype, *shape):
    if dtype == "i8":
        return torch.randint(-128, 128, shape, device="cuda", dtype=torch.int8)
    return torch.randn(shape, device="cuda").to(torch.float8_e4m3fn)


def up(extent):
    return -(-extent // 128)


def operands(dtype, m, n, k, groups=None):
    """All tensors that some kernel reads, by name. B is (N,K), or (L,N,K), in memory."""
    b = narrow(dtype, *([groups] if groups else []), n, k)
    lead = [groups] if groups else []
    scale_b = torch.rand(*lead, up(n), up(k), device="cuda") + 0.5
    move = (lambda t: t.permute(2, 1, 0)) if groups else (lambda t: t.T)
    return {
        "A": narrow(dtype, m, k), "B": move(b),
        "ScaleA": (torch.rand(up(k), m, device="cuda") + 0.5).T, "ScaleB": move(scale_b),
        "of_rows": [torch.rand(m, 1, device="cuda") + 0.5, torch.rand(1, n, device="cuda") + 0.5],
        "of_tensors": [torch.rand(1, 1, device="cuda") + 0.5 for _ in range(2)],
    }


def right(kernel, tensors, d, rows=256):
    """The largest difference of the first rows from a product in f64, by the size of its terms."""
    a, b = tensors["A"][:rows].double(), tensors["B"].double()
    if "ScaleA" in kernel.tensors:
        a = a * tensors["ScaleA"][: len(a)].double().repeat_interleave(128, 1)[:, : a.shape[1]]
        b = b * tensors["ScaleB"].double().repeat_interleave(128, 0).repeat_interleave(128, 1)[: b.shape[0], : b.shape[1]]
    want, size = a @ b, a.abs() @ b.abs()
    if "Scale_a" in kernel.tensors:
        scale = tensors["Scale_a"].double()[: len(a)] * tensors["Scale_b"].double()
        want, size = want * scale, size * scale
    return ((d[: len(a)].double() - want).abs() / size.clamp(min=1e-30)).max().item()


def torch_product(kind, dtype, tensors):
    a, b, bf16 = tensors["A"], tensors["B"], torch.bfloat16
    if dtype == "i8":
        return lambda: torch._int_mm(a, b)
    if kind == "blocks":
        # torch wants scales of B (K/128,N/128), columns of which lie in steps of four.
        of_b = torch.empty(up(b.shape[1]), (up(b.shape[0]) + 3) // 4 * 4, device="cuda")[:, : up(b.shape[0])]
        of_b.copy_(tensors["ScaleB"].T)
        return lambda: torch._scaled_mm(a, b, tensors["ScaleA"], of_b.T, out_dtype=bf16)
    if kind == "plain":
        one = torch.ones(1, 1, device="cuda")
        return lambda: torch._scaled_mm(a, b, one, one, out_dtype=bf16, use_fast_accum=False)
    scales = tensors["Scale_a"], tensors["Scale_b"]
    return lambda: torch._scaled_mm(a, b, *scales, out_dtype=bf16, use_fast_accum=True)


def kind_of(kernel):
    if "ScaleA" in kernel.tensors:
        return "blocks"
    if "Scale_a" not in kernel.tensors:
        return "plain"
    return "tensors" if "tensor" in kernel.name else "rows"


def dense(kernels, dtype, m, n, k):
    tensors, launches, said = operands(dtype, m, n, k), {}, {}
    for kernel in kernels:
        kind, d = kind_of(kernel), torch.full((m, n), 77, device="cuda", dtype=TYPES[kernel.tensors["D"]])
        scales = dict(zip(["Scale_a", "Scale_b"], tensors["of_tensors" if kind == "tensors" else "of_rows"]))
        own = {**tensors, **scales, "D": d}
        launch = kernel.launch(own, {"M": m, "N": n, "K": k})
        error = launch()
        torch.cuda.synchronize()
        said[kernel.name] = f"error {error}" if error else f"{right(kernel, own, d):.1e}"
        launches[kernel.name] = launch
        try:
            of_torch = torch_product(kind, dtype, own)
            of_torch()
            launches.setdefault(f"torch {kind}", of_torch)
        except (RuntimeError, ValueError) as refused:
            print(f"torch {kind}: {str(refused).splitlines()[0][:160]}")
    report(f"{dtype} {m}x{n}x{k}", 2 * m * n * k, timed(launches), said)


def grouped(kernels, plain, groups, m, n, k):
    tensors = operands("e4m3", m, n, k, groups)
    one = {**tensors, "B": tensors["B"][:, :, 0], "ScaleB": tensors["ScaleB"][:, :, 0]}
    launches, said = {}, {}
    random = torch.Generator().manual_seed(7)
    for spread in ("even", "skewed"):
        weights = torch.ones(groups) if spread == "even" else torch.rand(groups, generator=random) ** 4
        rows = (weights / weights.sum() * m).floor().int()
        rows[rows.argmax()] += m - rows.sum()
        ends = rows.cuda().cumsum(0).int()
        for kernel in kernels:
            d = torch.full((m, n), 77, device="cuda", dtype=torch.bfloat16)
            own = {**tensors, "Offsets": ends, "D": d}
            launch = kernel.launch(own, {"M": m, "N": n, "K": k, "L": groups})
            name, error = f"{kernel.name} {spread}", launch()
            torch.cuda.synchronize()
            first = int(ends[0])
            said[name] = f"error {error}" if error else f"{right(kernel, {**own, **one, 'A': tensors['A'][:first]}, d[:first]):.1e}"
            launches[name] = launch
    for kernel in plain:
        own = {**one, "D": torch.full((m, n), 77, device="cuda", dtype=torch.bfloat16)}
        launches[f"{kernel.name} dense"] = launch = kernel.launch(own, {"M": m, "N": n, "K": k})
        launch()
    report(f"{groups} groups, {m} rows, {n}x{k}", 2 * m * n * k, timed(launches), said)


def report(what, flops, times, said):
    print(what)
    of_torch = {name: us for name, us in times.items() if name.startswith("torch")}
    for name, us in times.items():
        ratios = " ".join(f"{other}: {other_us / us:.3f}" for other, other_us in of_torch.items() if name not in of_torch)
        print(f"  {name:28} {us:9.1f} us {flops / us * 1e-6:8.1f} TFLOP/s  {said.get(name, ''):8} {ratios}", flush=True)


if __name__ == "__main__":
    torch.manual_seed(3)
    all_kernels = [Kernel(name) for name in sys.argv[1:]]
    running = []
    for kernel in all_kernels:
        if os.path.exists(f"{kernel.name}.so"):
            continue
        running.append(kernel.build())
        if len(running) >= 14:
            running.pop(0).wait()
    assert not any(build.wait() for build in running)
    if "BUILD_ONLY" in os.environ:
        sys.exit()
    for kernel in all_kernels:
        kernel.load()
    print(torch.cuda.get_device_name(), torch.__version__)
    for dtype, problems in DENSE.items():
        own = [k for k in all_kernels if k.tensors["A"] == dtype and "Offsets" not in k.tensors]
        for problem in problems if own else []:
            dense(own, dtype, *problem)
    of_groups = [k for k in all_kernels if "Offsets" in k.tensors]
    for problem in GROUPED if of_groups else []:
        grouped(of_groups, [k for k in all_kernels if k.name.startswith("blocks")], *problem)
