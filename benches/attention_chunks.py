"""Times chunks of prompts over keys in pages by TMA against the same keys without pages, and against FlashAttention-2 of torch, in turn.

cutemplate emit attention --arch sm_90a --set head=128 --set dtype=bf16 --set mask=causal --set varlen=true --name dense --out dense
cutemplate emit attention .. --set varlen=true --set paged=true --set page=64 --name pages64 --out pages64
nvcc -cubin -arch=sm_90a -std=c++17 -O3 --expt-relaxed-constexpr -I$CUTLASS_PATH/include pages64/pages64_sm90a.cu -o pages64/pages64_sm90a.cubin
python3 benches/attention_chunks.py dense pages64 pages128
"""

import ctypes
import pathlib
import re
import sys

import torch

from attention import CTAS, CUDA, done, medians, params

SHAPES = ((8, 2048, 8192), (8, 512, 8192), (2, 2048, 32768), (32, 256, 2048))  # sequences, queries and keys of each


def encode(tensor, lines, into):
    """The map of (..,D) whose outer modes are rows, heads, and batches or pages: boxes of 64 elements of `lines` rows."""
    rank = tensor.dim()
    order = [rank - 1, rank - 3, rank - 2] + list(range(rank - 3))
    dims = (ctypes.c_uint64 * rank)(*(tensor.shape[mode] for mode in order))
    strides = (ctypes.c_uint64 * (rank - 1))(*(2 * tensor.stride(mode) for mode in order[1:]))
    box, one = (ctypes.c_uint32 * rank)(64, lines, *([1] * (rank - 2))), (ctypes.c_uint32 * rank)(*([1] * rank))
    done(CUDA.cuTensorMapEncodeTiled(ctypes.byref(into), 9, rank, ctypes.c_void_p(tensor.data_ptr()), dims, strides, box, one,
                                     0, 3, 3, 0))


class Kernel:
    """A folder with NAME.cuh, NAME_params.h and NAME.cubin."""

    def __init__(self, folder):
        cubin = next(pathlib.Path(folder).glob("*.cubin"))
        text = cubin.with_suffix(".cuh").read_text()
        self.folder, self.name = folder, cubin.stem
        self.threads, self.smem = (int(re.search(rf"(\d+) {of}", text)[1]) for of in ("threads,", "bytes of dynamic"))
        self.rows, self.head = map(int, re.search(r"using TileQ = Shape<_(\d+),_(\d+)>;", text).groups())
        self.keys = int(re.search(r"using TileK = Shape<_(\d+),", text)[1])
        page, part = (re.search(rf"using {of} = (?:_|Int<)(\d+)", text) for of in ("Page", "Part"))
        self.page, self.part = (int(page[1]), int(part[1])) if page else (0, self.keys)
        self.params, module = params(cubin.with_name(f"{self.name}_params.h")), ctypes.c_void_p()
        done(CUDA.cuModuleLoad(ctypes.byref(module), str(cubin).encode()))
        self.function = ctypes.c_void_p()
        done(CUDA.cuModuleGetFunction(ctypes.byref(self.function), module, self.name.encode()))
        done(CUDA.cuFuncSetAttribute(self.function, 8, self.smem))

    def launch(self, q, k, v, o, starts, of_keys):
        """A function that launches, with the parameters and the grid of the plan's rule. `of_keys` is the starts, or a table and lengths."""
        room = (ctypes.c_byte * (ctypes.sizeof(self.params) + 128))()
        p = self.params.from_buffer(room, -ctypes.addressof(room) % 128)
        for name, tensor, lines in (("q", q, self.rows), ("k", k, self.part), ("v", v, self.part)):
            encode(tensor, lines, getattr(p, f"map_{name}"))
            setattr(p, f"{name}_head", tensor.shape[-2] > 1)
        p.o, (p.o_row, p.o_head, _) = o.data_ptr(), o.stride()
        (p.tq, p.hq, _), p.hk, p.scale = q.shape, k.shape[-2], self.head**-0.5
        p.startsq, p.starts = starts.data_ptr(), starts.shape[0]
        if self.page:
            table, lengths = of_keys
            p.table, p.table_stride0, p.lengths, p.entries = table.data_ptr(), table.stride(0), lengths.data_ptr(), table.shape[1]
            p.k_page = p.v_page = k.shape[0] > 1
            p.pages, p.page, p.b, most = k.shape[0], k.shape[1], table.shape[0], table.shape[1] * k.shape[1]
        else:
            p.startsk, p.tk, most = of_keys.data_ptr(), k.shape[0], k.shape[0]
        works = (p.tq // self.rows + p.starts + 1) * p.hq
        grid, arguments = works if most > 2048 else min(works, CTAS), (ctypes.c_void_p * 1)(ctypes.addressof(p))
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        return lambda _=(room, q, k, v, starts, of_keys): done(
            CUDA.cuLaunchKernel(self.function, grid, 1, 1, self.threads, 1, 1, self.smem, stream, arguments, None))


def flash(q, k, v, starts, of_keys, queries, keys):
    """A function that calls FlashAttention-2, and what it leaves; None where torch has none for such heads."""
    def run():
        return torch.ops.aten._flash_attention_forward(q, k, v, starts, of_keys, queries, keys, 0.0, True, False)[0]
    try:
        return run, run()
    except RuntimeError as error:
        print(f"FlashAttention-2: {str(error).splitlines()[0]}", file=sys.stderr)
        return None, None


def main():
    torch.manual_seed(1)
    kernels, (hq, hk) = list(map(Kernel, sys.argv[1:])), (32, 8)
    print("| kernel | B | queries | keys | TFLOP/s | of the one without pages | FlashAttention-2 | elements that differ | from FlashAttention |")
    print("|---|---|---|---|---|---|---|---|---|")
    for batches, queries, keys in SHAPES:
        head = kernels[0].head
        random = lambda *shape: torch.randn(shape, device="cuda", dtype=torch.bfloat16)
        q, k, v = random(batches * queries, hq, head), random(batches * keys, hk, head), random(batches * keys, hk, head)
        starts, of_keys = (torch.arange(batches + 1, device="cuda", dtype=torch.int32) * n for n in (queries, keys))
        functions, outputs = [], []
        for kernel in kernels:
            o = torch.full_like(q, float("nan"))
            if kernel.page:
                # The same keys, in pages that lie in no order.
                entries = keys // kernel.page
                table = torch.randperm(batches * entries, device="cuda").reshape(batches, entries)
                in_pages = []
                for tensor in (k, v):
                    pages = torch.empty((batches * entries, kernel.page, hk, head), device="cuda", dtype=tensor.dtype)
                    pages[table.flatten()] = tensor.reshape(pages.shape)
                    in_pages.append(pages)
                lengths = torch.full((batches,), keys, device="cuda", dtype=torch.int32)
                functions.append(kernel.launch(q, *in_pages, o, starts, (table.int(), lengths)))
            else:
                functions.append(kernel.launch(q, k, v, o, starts, of_keys))
            outputs.append(o)
        other, right = flash(q, k, v, starts, of_keys, queries, keys)
        times = medians(functions + ([other] if other else []), 9)
        torch.cuda.synchronize()
        flop = 4 * batches * hq * head * (queries * keys - queries * (queries - 1) / 2) / 1e9
        for kernel, time, o in zip(kernels, times, outputs):
            differ = int((o != outputs[0]).sum())
            off = "" if right is None else f"{(o.float() - right.float()).abs().max().item():.2g}"
            ratio = f"{times[-1] / time:.3f}" if other else ""
            print(f"| {kernel.folder} | {batches} | {queries} | {keys} | {flop / time:.0f} | {times[0] / time:.3f} | {ratio} | {differ} | {off} |")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
