"""Times decoding from pages against a device copy and cuDNN (without pages) in one process, in turn, and compares values with torch.

cutemplate emit attention --arch sm_80 --set head=128 --set dtype=bf16 --set paged=true --name pages --out pages
nvcc -cubin -arch=sm_90a -std=c++17 -O3 --expt-relaxed-constexpr -I$CUTLASS_PATH/include pages/pages_sm80.cu -o pages/pages_sm80.cubin
python3 benches/attention_pages.py pages
"""

import ctypes
import pathlib
import re
import sys

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from attention import CUDA, done, medians, params


def ceil_div(a, b):
    return -(-a // b)


class Kernel:
    """A folder with NAME.cuh, NAME_params.h and NAME.cubin."""

    def __init__(self, folder):
        cubin = next(pathlib.Path(folder).glob("*.cubin"))
        text = cubin.with_suffix(".cuh").read_text()
        self.folder, self.name = folder, cubin.stem
        self.threads, self.smem = (int(re.search(rf"(\d+) {of}", text)[1]) for of in ("threads,", "bytes of dynamic"))
        self.rows, self.head = map(int, re.search(r"using TileQ = Shape<_(\d+),_(\d+)>;", text).groups())
        self.keys = int(re.search(r"using TileK = Shape<_(\d+),", text)[1])
        steps = re.search(r"all\.keep\(work\.split \* (\w+)", text)[1]
        self.steps = int(steps) if steps.isdigit() else None
        self.narrow = "using Stored" in text
        self.params, module = params(cubin.with_name(f"{self.name}_params.h")), ctypes.c_void_p()
        done(CUDA.cuModuleLoad(ctypes.byref(module), str(cubin).encode()))
        self.entries = [ctypes.c_void_p() for _ in range(2)]
        for entry, suffix in zip(self.entries, ("", "_combine")):
            done(CUDA.cuModuleGetFunction(ctypes.byref(entry), module, (self.name + suffix).encode()))
        done(CUDA.cuFuncSetAttribute(self.entries[0], 8, self.smem))

    def chosen(self, units, steps):
        """Steps of a split, as the plan's rule has them."""
        at_once = 132 * min(8, (228 << 10) // (self.smem + 32 * self.keys + 1024))
        splits = at_once // units if units <= at_once else ceil_div(4 * at_once, units)
        return max(4, ceil_div(steps, splits))

    def launch(self, q, k, v, o, table, lengths, scales):
        """A function that launches both entries, with the parameters and the grids of the plan's rule."""
        p = self.params()
        for name, tensor, apart in (("q", q, "batch"), ("k", k, "page"), ("v", v, "page"), ("o", o, "batch")):
            setattr(p, name, tensor.data_ptr())
            for field, stride in zip((apart, "row", "head"), tensor.stride()):
                setattr(p, f"{name}_{field}", stride)
        p.table, p.table_stride0, p.lengths = table.data_ptr(), table.stride(0), lengths.data_ptr()
        (p.b, p.sq, p.hq, _), (p.pages, p.page, p.hk, _), p.entries = q.shape, k.shape, table.shape[1]
        if self.narrow:
            p.scalek, p.scalev = (scale.data_ptr() for scale in scales)
        units, all_steps = ceil_div(p.sq * (p.hq // p.hk), self.rows) * p.hk * p.b, ceil_div(p.entries * p.page, self.keys)
        steps = self.steps or self.chosen(units, all_steps)
        p.scale, p.splits = self.head**-0.5, ceil_div(all_steps, steps)
        if self.steps is None:
            p.steps = steps
        works, outputs = units * p.splits, p.hq * p.sq * p.b
        workspace = torch.empty(p.splits * outputs * (self.head + 2), device="cuda")
        p.workspace = workspace.data_ptr()
        arguments, stream = (ctypes.c_void_p * 1)(ctypes.addressof(p)), ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        grids = (works, self.threads, self.smem), (outputs, 128, 0)

        def run(_=(p, workspace)):
            for entry, (grid, threads, smem) in zip(self.entries, grids):
                done(CUDA.cuLaunchKernel(entry, grid, 1, 1, threads, 1, 1, smem, stream, arguments, None))
        return run


def main():
    torch.manual_seed(1)
    kernels = list(map(Kernel, sys.argv[1:]))
    print("| kernel | B | keys | page | us | of the copy | largest error |\n|---|---|---|---|---|---|---|")
    for batches, keys, page in ((32, 8192, 16), (32, 4096, 64), (8, 8192, 16), (64, 4096, 16)):
        hq, hk, head, entries = 32, 8, kernels[0].head, keys // page
        q, o = (torch.randn((batches, 1, hq, head), device="cuda", dtype=torch.bfloat16) for _ in range(2))
        k, v = (torch.randn((batches * entries, page, hk, head), device="cuda", dtype=torch.bfloat16) for _ in range(2))
        small, scales = [t.to(torch.float8_e4m3fn) for t in (k, v)], [torch.full((hk,), scale, device="cuda") for scale in (0.5, 2.0)]
        table = torch.randperm(batches * entries, device="cuda", dtype=torch.int32).reshape(batches, entries)
        lengths = torch.full((batches,), keys, device="cuda", dtype=torch.int32)
        turned = [q.transpose(1, 2)] + [t.reshape(batches, keys, hk, head).transpose(1, 2) for t in (k, v)]
        into, into_small = torch.empty_like(k), torch.empty_like(small[0])

        def cudnn():
            with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
                return F.scaled_dot_product_attention(*turned, enable_gqa=True)

        functions = [kernel.launch(q, *(small if kernel.narrow else (k, v)), o, table, lengths, scales) for kernel in kernels]
        copies = [lambda: into.copy_(k), lambda: into_small.copy_(small[0])]
        *own, other, copy, copy_small = medians(functions + [cudnn] + copies, 9)

        def right_of(kernel):
            all_scales = scales if kernel.narrow else [torch.ones((hk,), device="cuda")] * 2
            all_rows = [t[table[:1].long()].float() for t in (small if kernel.narrow else (k, v))]
            flat = [(t * scale[:, None]).reshape(1, keys, hk, head).transpose(1, 2) for t, scale in zip(all_rows, all_scales)]
            return F.scaled_dot_product_attention(q[:1].transpose(1, 2).float(), *flat, enable_gqa=True).transpose(1, 2)

        for kernel, function, time in zip(kernels, functions, own):
            o.fill_(float("nan"))
            function()
            error = (o[:1].float() - right_of(kernel)).abs().max().item()
            ratio = (copy_small if kernel.narrow else copy) / time  # a copy reads K and writes as much: K and V are read here
            print(f"| {kernel.folder} | {batches} | {keys} | {page} | {time * 1e3:.1f} | {ratio:.3f} | {error:.2g} |")
        print(f"| cuDNN | {batches} | {keys} | {page} | {other * 1e3:.1f} | {copy / other:.3f} | |", flush=True)


if __name__ == "__main__":
    main()
