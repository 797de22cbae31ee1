"""Times attention against cuDNN and FlashAttention-2 in one process, in turn, and compares values with torch in f32.

cutemplate emit attention --arch sm_90a --set head=128 --set dtype=bf16 --name d128 --out d128
nvcc -cubin -arch=sm_90a -std=c++17 -O3 --expt-relaxed-constexpr -I$CUTLASS_PATH/include d128/d128_sm90a.cu -o d128/d128_sm90a.cubin
python3 benches/attention.py d128
"""

import ctypes
import pathlib
import re
import statistics
import sys

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

CUDA = ctypes.CDLL("libcuda.so.1")
torch.zeros(1, device="cuda")  # makes the context that modules are loaded into
CTAS = torch.cuda.get_device_properties(0).multi_processor_count
TYPES = {"void const*": ctypes.c_uint64, "void*": ctypes.c_uint64, "int32_t": ctypes.c_int32,
         "int64_t": ctypes.c_int64, "float": ctypes.c_float}


class Map(ctypes.Structure):
    _fields_ = [("words", ctypes.c_uint64 * 16)]


def done(result):
    assert result == 0, f"CUDA driver: error {result}"


def encode(tensor, rows, into):
    """The map of (B,S,H,D): boxes of 64 elements of `rows` rows."""
    batches, length, heads, elements = tensor.shape
    dims = (ctypes.c_uint64 * 4)(elements, length, heads, batches)
    strides = (ctypes.c_uint64 * 3)(*(2 * tensor.stride(mode) for mode in (1, 2, 0)))
    box, one = (ctypes.c_uint32 * 4)(64, rows, 1, 1), (ctypes.c_uint32 * 4)(1, 1, 1, 1)
    kind = 9 if tensor.dtype == torch.bfloat16 else 6
    done(CUDA.cuTensorMapEncodeTiled(ctypes.byref(into), kind, 4, ctypes.c_void_p(tensor.data_ptr()), dims, strides, box, one,
                                     0, 3, 3, 0))


def params(header):
    """The struct of a parameter header."""
    fields = re.findall(r"^\s*(?:alignas\(128\) )?(CUtensorMap|void const\*|void\*|int32_t|int64_t|float) (\w+);",
                        header.read_text(), re.M)
    fields = [(name, Map if ty == "CUtensorMap" else TYPES[ty]) for ty, name in fields]
    return type("Params", (ctypes.Structure,), {"_fields_": fields + [("end", ctypes.c_byte * 128)]})


class Kernel:
    """A folder with NAME.cuh, NAME_params.h and NAME.cubin."""

    def __init__(self, folder):
        cubin = next(pathlib.Path(folder).glob("*.cubin"))
        text = cubin.with_suffix(".cuh").read_text()
        self.name = cubin.stem
        self.threads, self.smem = (int(re.search(rf"(\d+) {of}", text)[1]) for of in ("threads,", "bytes of dynamic"))
        tile = {name: [int(n) for n in re.findall(r"\d+", re.search(rf"using Tile{name} = Shape<(.*?)>;", text)[1])]
                for name in ("Q", "K")}
        (self.queries, self.head), (self.keys, _) = tile["Q"], tile["K"]
        self.causal = "diagonal = true" in text
        self.params = params(cubin.with_name(f"{self.name}_params.h"))
        self.function, module = ctypes.c_void_p(), ctypes.c_void_p()
        done(CUDA.cuModuleLoad(ctypes.byref(module), str(cubin).encode()))
        done(CUDA.cuModuleGetFunction(ctypes.byref(self.function), module, self.name.encode()))
        done(CUDA.cuFuncSetAttribute(self.function, 8, self.smem))

    def launch(self, q, k, v, o, **values):
        """A function that launches, with the parameters and the grid of the plan's rule, and values of further parameters."""
        room = (ctypes.c_byte * (ctypes.sizeof(self.params) + 128))()
        p = self.params.from_buffer(room, -ctypes.addressof(room) % 128)
        by_tma = hasattr(p, "map_q")
        for name, tensor, rows in (("q", q, self.queries), ("k", k, self.keys), ("v", v, self.keys)):
            if by_tma:
                encode(tensor, rows, getattr(p, f"map_{name}"))
                setattr(p, f"{name}_batch", tensor.shape[0] > 1)
                setattr(p, f"{name}_head", tensor.shape[2] > 1)
            else:
                setattr(p, name, tensor.data_ptr())
                for mode, stride in zip(("batch", "row", "head"), tensor.stride()):
                    setattr(p, f"{name}_{mode}", stride)
        p.o, (p.o_batch, p.o_row, p.o_head, _) = o.data_ptr(), o.stride()
        (p.b, p.sq, p.hq, _), (_, p.sk, p.hk, _), p.scale = q.shape, k.shape, self.head**-0.5
        for name, value in values.items():
            setattr(p, name, value)
        works, long = -(-p.sq // self.queries) * p.hq * p.b, self.causal and p.sk > 2048
        p.group = min((32 << 20) * (p.hq // p.hk) // (p.sk * 4 * self.head), p.hq * p.b) if long else 1
        grid, arguments = min(works, CTAS) if by_tma and not long else works, (ctypes.c_void_p * 1)(ctypes.addressof(p))
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        return lambda _=room: done(CUDA.cuLaunchKernel(self.function, grid, 1, 1, self.threads, 1, 1, self.smem, stream, arguments, None))


def medians(functions, rounds):
    """Milliseconds of each, timed in turn, in bursts of 4 ms."""
    def burst(function, times):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(times):
            function()
        end.record()
        torch.cuda.synchronize()
        return begin.elapsed_time(end) / times

    times = [max(1, min(40, int(4 / burst(function, 2)))) for function in functions for _ in [function()]]
    all_rounds = [[burst(function, n) for function, n in zip(functions, times)] for _ in range(rounds)]
    return [statistics.median(column) for column in zip(*all_rounds)]


def main():
    torch.manual_seed(1)
    print("| kernel | S | TFLOP/s | cuDNN | ratio | FlashAttention-2 | ratio | largest error |\n|---|---|---|---|---|---|---|---|")
    for kernel in map(Kernel, sys.argv[1:]):
        for length in (512, 1024, 2048, 4096, 8192, 16384):
            batches, heads = 16384 // length, 2048 // kernel.head
            shape = (batches, length, heads, kernel.head)
            q, k, v, o = (torch.randn(shape, device="cuda", dtype=torch.bfloat16) for _ in range(4))
            turned = [tensor.transpose(1, 2) for tensor in (q, k, v)]

            def by(backend):
                def run():
                    with sdpa_kernel(backend):
                        return F.scaled_dot_product_attention(*turned, is_causal=kernel.causal)
                return run

            others = [by(backend) for backend in (SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION)]
            own, *others = medians([kernel.launch(q, k, v, o), *others], 7)
            one = [tensor[:1, :, :1].float().transpose(1, 2) for tensor in (q, k, v)]
            right = F.scaled_dot_product_attention(*one, is_causal=kernel.causal).transpose(1, 2)
            error = (o[:1, :, :1].float() - right).abs().max().item()
            flop = 4 * batches * heads * length**2 * kernel.head / (2 if kernel.causal else 1) / 1e9
            against = " | ".join(f"{flop / other:.0f} | {other / own:.3f}" for other in others)
            print(f"| {kernel.name} | {length} | {flop / own:.0f} | {against} | {error:.2g} |", flush=True)


if __name__ == "__main__":
    main()
