"""Times attention of ragged sequences against FlashAttention-2 and cuDNN, and functions of scores against FlexAttention, in one process,
in turn, and compares values with what those give.

cutemplate emit attention --arch sm_90a -s head=128 -s dtype=bf16 -s varlen=true --name varlen --out varlen
cutemplate emit attention --arch sm_90a -s head=128 -s dtype=bf16 -s mask=window --name window --out window
cutemplate emit attention --arch sm_90a -s head=128 -s dtype=bf16 -s mask=causal -s 'score=|s; cap| cap * tanh(s * (1 / cap))' --name cap --out cap
cutemplate emit attention --arch sm_90a -s head=128 -s dtype=bf16 -s mask=causal -s 'score=|s, b, h, q, k, slope| s + slope * (k - q)' \\
  -s 'aux=f32:(0,1,0,0)' --name alibi --out alibi
nvcc -cubin -arch=sm_90a -std=c++17 -O3 --expt-relaxed-constexpr -I$CUTLASS_PATH/include varlen/varlen_sm90a.cu -o varlen/varlen_sm90a.cubin
python3 benches/attention_masks.py varlen window cap alibi
"""

import ctypes
import sys

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from attention import CTAS, CUDA, Kernel, done, medians

FLEX = torch.compile(flex_attention, dynamic=False)
LENGTH, WINDOW, CAP = 16384, 1024, 30.0


def encode(tensor, rows, into):
    """The map of (T,H,D): boxes of 64 elements of `rows` rows."""
    length, heads, elements = tensor.shape
    dims, strides = (ctypes.c_uint64 * 3)(elements, length, heads), (ctypes.c_uint64 * 2)(*(2 * s for s in tensor.stride()[:2]))
    box, one = (ctypes.c_uint32 * 3)(64, rows, 1), (ctypes.c_uint32 * 3)(1, 1, 1)
    kind = 9 if tensor.dtype == torch.bfloat16 else 6
    done(CUDA.cuTensorMapEncodeTiled(ctypes.byref(into), kind, 3, ctypes.c_void_p(tensor.data_ptr()), dims, strides, box, one, 0, 3, 3, 0))


def ragged(kernel, q, k, v, starts, o):
    """A function that launches, with the parameters and the grid of the plan's rule."""
    room = (ctypes.c_byte * (ctypes.sizeof(kernel.params) + 128))()
    p = kernel.params.from_buffer(room, -ctypes.addressof(room) % 128)
    for name, tensor, rows in (("q", q, kernel.queries), ("k", k, kernel.keys), ("v", v, kernel.keys)):
        encode(tensor, rows, getattr(p, f"map_{name}"))
        setattr(p, f"{name}_head", tensor.shape[1] > 1)
    p.o, (p.o_row, p.o_head, _) = o.data_ptr(), o.stride()
    p.startsq = p.startsk = starts.data_ptr()
    p.starts, (p.tq, p.hq, _), (p.tk, p.hk, _), p.scale = len(starts), q.shape, k.shape, kernel.head**-0.5
    works, long = (p.tq // kernel.queries + p.starts + 1) * p.hq, kernel.causal and p.tk > 2048
    grid, arguments = works if long else min(works, CTAS), (ctypes.c_void_p * 1)(ctypes.addressof(p))
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    return lambda _=room: done(CUDA.cuLaunchKernel(kernel.function, grid, 1, 1, kernel.threads, 1, 1, kernel.smem, stream, arguments, None))


def lengths(kernel):
    """64 sequences of lengths whose logarithms are uniform from 16 to 8192."""
    random = torch.Generator().manual_seed(7)
    of = (16 * 512 ** torch.rand(64, generator=random)).int()
    starts = torch.cat([torch.zeros(1, dtype=torch.int32), of.cumsum(0).int()]).cuda()
    heads, total, longest = 2048 // kernel.head, int(of.sum()), int(of.max())
    q, k, v, o = (torch.randn(total, heads, kernel.head, device="cuda", dtype=torch.bfloat16) for _ in range(4))
    flash = lambda: torch.ops.aten._flash_attention_forward(q, k, v, starts, starts, longest, longest, 0.0, kernel.causal, False)[0]
    nested = [torch.nested.nested_tensor_from_jagged(t, starts.long()).transpose(1, 2) for t in (q, k, v)]

    def cudnn():
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            return F.scaled_dot_product_attention(*nested, is_causal=kernel.causal)

    others = {"FlashAttention-2": flash}
    try:
        cudnn()
        others["cuDNN"] = cudnn
    except RuntimeError as error:
        print(f"cuDNN refuses: {str(error).splitlines()[0]}")
    flop = 4 * heads * kernel.head * sum(int(n) ** 2 for n in of) / (2 if kernel.causal else 1)
    return ragged(kernel, q, k, v, starts, o), others, flop, o, flash()


def scores(kernel):
    """One sequence of 16384, by what the kernel does to scores."""
    heads, scale = 2048 // kernel.head, kernel.head**-0.5
    q, k, v, o = (torch.randn(1, LENGTH, heads, kernel.head, device="cuda", dtype=torch.bfloat16) for _ in range(4))
    turned = [tensor.transpose(1, 2) for tensor in (q, k, v)]
    slopes = torch.tensor([2 ** (-8 * (h + 1) / heads) for h in range(heads)], device="cuda")
    names = {name for name, _ in kernel.params._fields_}
    values, seen = {}, LENGTH * (LENGTH + 1) / 2
    mask, change = (lambda b, h, i, j: j <= i), None
    if "left" in names:
        values = {"left": WINDOW, "right": 0}
        mask, seen = (lambda b, h, i, j: (j <= i) & (i - j <= WINDOW)), (WINDOW + 1) * (LENGTH - WINDOW / 2)
    if "cap" in names:
        values["cap"], change = CAP, lambda s, b, h, i, j: CAP * torch.tanh(s / CAP)
    elif "slope" in names:
        values["slope"], change = slopes.data_ptr(), lambda s, b, h, i, j: s + slopes[h] * (j - i)
    blocks = create_block_mask(mask, None, None, LENGTH, LENGTH)
    flex = lambda: FLEX(*turned, score_mod=change, block_mask=blocks, scale=scale)
    right = flex().transpose(1, 2)
    return kernel.launch(q, k, v, o, **values), {"FlexAttention": flex}, 4 * heads * kernel.head * seen, o, right


def main():
    torch.manual_seed(1)
    print("| kernel | us | TFLOP/s | against | ratio | largest difference |\n|---|---|---|---|---|---|")
    for kernel in map(Kernel, sys.argv[1:]):
        is_ragged = any(name == "startsq" for name, _ in kernel.params._fields_)
        launch, others, flop, o, right = (lengths if is_ragged else scores)(kernel)
        own, *times = medians([launch, *others.values()], 7)
        launch()
        difference = (o.float() - right.float()).abs().max().item()
        for other, time in zip(others, times):
            print(f"| {kernel.name} | {1e3 * own:.1f} | {flop / own / 1e9:.0f} | {other} {1e3 * time:.1f} | {time / own:.3f} | {difference:.2g} |", flush=True)


if __name__ == "__main__":
    main()
