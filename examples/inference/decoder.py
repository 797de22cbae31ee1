"""Inputs of a decoder, and what is right for them.

  python3 decoder.py make FOLDER TOKENS VOCABULARY FEATURES HEADS KEY_HEADS EXPERTS HIDDEN
  python3 decoder.py check FOLDER HEADS KEY_HEADS

`check` goes through the decoder step by step. Each is computed in double precision from what the step before left in its file, with a bound for
every element of how far the kernels' may be from it: by what they round, which IEEE 754, the CUDA C++ Programming Guide (mathematical functions),
the PTX ISA ("ex2") and the width of tensor cores' sums say. Errors are those of one step, so that a bound is little more than the rounding to f16.
"""

import sys
from pathlib import Path

import numpy as np

# Elements of a head, elements that share a scale, and experts of a token.
HEAD, BLOCK, CHOSEN = 32, 128, 2

# Relative errors of one rounding to f16 and to f32; half of the least f16; the least normal f32.
U16, U32, TINY16, TINY32 = 2.0**-11, 2.0**-24, 2.0**-25, 2.0**-126


class Bounded:
    """Numbers, and how far from them what was computed may be."""

    def __init__(self, value, error=0.0):
        self.value = value
        self.error = np.zeros_like(value) + error

    def most(self):
        return np.abs(self.value) + self.error

    def grown(self, error):
        return Bounded(self.value, self.error + error)

    def stored(self):
        """Rounded to f16."""
        assert self.most().max(initial=0) < 65504
        return self.grown(U16 * self.most() + TINY16)


def gamma(operations):
    """Relative error of as many roundings to f32, one on another (Higham, Accuracy and Stability, lemma 3.1)."""
    return operations * U32 / (1 - operations * U32)


def product(a, b):
    """A @ B on tensor cores: products are exact, and four of them are added with 6 cuts, each of less than two roundings of the sum of
    sizes (M. Fasi et al., "Numerical behavior of NVIDIA tensor cores", PeerJ Computer Science 7:e330, 2021)."""
    depth = a.value.shape[-1]
    sizes = a.most() @ b.most()
    passed_on = sizes - np.abs(a.value) @ np.abs(b.value)
    return Bounded(a.value @ b.value, passed_on + gamma(3 * depth) * sizes)


def e4m3(bits):
    """The numbers of 8 bits: 4 of exponent, 3 of fraction."""
    bits = bits.astype(np.int64)
    exponent, fraction = bits >> 3 & 15, bits & 7
    value = np.where(exponent == 0, fraction * 2.0**-9, (8 + fraction) * 2.0 ** (exponent - 10))
    return np.where(bits & 127 == 127, np.nan, np.where(bits & 128, -value, value))


def spread(scales, shape, block):
    """A scale for each element."""
    for axis, extent in enumerate(shape):
        scales = scales.repeat(block[axis], axis).take(range(extent), axis)
    return scales


def scales_of(x):
    """The largest of 128 elements divided by 448, or 1 where that is 0: a quotient, or a product with a quotient."""
    starts = range(0, x.value.shape[-1], BLOCK)
    most = np.maximum.reduceat(np.abs(x.value), starts, -1)
    value = np.where(most == 0, 1, most / 448)
    return Bounded(value, gamma(3) * value)


def quantised(x, scales):
    """x by its scales, to 4 bits of a number, or to 2^-10: quotient and product are rounded to f32 before."""
    value = x.value / spread(scales.value, x.value.shape, (1, BLOCK))
    return Bounded(value, np.maximum(2.0**-4 * np.abs(value), 2.0**-10) + gamma(4) * np.abs(value))


def scaled(x, scales, weights, weight_scales):
    """x @ weights^T, each with scales of blocks. Sums of 128 products keep 14 bits (docs/lowprec.md has this bound)."""
    a = x.value * spread(scales.value, x.value.shape, (1, BLOCK))
    b = weights.value * spread(weight_scales.value, weights.value.shape, (BLOCK, BLOCK))
    return Bounded(a @ b.T, 0.018 * (np.abs(a) @ np.abs(b).T))


def grouped(x, weights, ends):
    """The rows of each group by its matrix; 0 for rows of no group."""
    value, error, start = *np.zeros((2, x.value.shape[0], weights.value.shape[-1])), 0
    for matrix, end in zip(weights.value, ends.value.reshape(-1).astype(np.int64)):
        of = product(Bounded(x.value[start:end]), Bounded(matrix))
        value[start:end], error[start:end], start = of.value, of.error, max(start, end)
    return Bounded(value, error)


def weights_of(router):
    """The softmax of the two largest logits: their difference is rounded, expf is within 2 units, sum and quotient are rounded."""
    first, second = np.sort(router.value, -1)[:, : -CHOSEN - 1 : -1].T
    less = np.exp(second - first)
    value = np.stack([1 / (1 + less), less / (1 + less)], -1)
    return Bounded(value, value * (gamma(8) + U32 * (first - second)[:, None]) + TINY32)


def chosen(router):
    """The numbers of the two largest logits, the first of equal ones first."""
    return Bounded(np.argsort(-router.value, -1, kind="stable")[:, :CHOSEN])


def sorted_slots(expert):
    """The pairs of token and choice, sorted by expert."""
    return np.argsort(expert.value.reshape(-1), kind="stable")


def combined(down, slot, weight):
    parts = down.value[slot.value.astype(np.int64)] * weight.value[..., None]
    return Bounded(parts.sum(1), gamma(2) * np.abs(parts).sum(1))


def norm(x, scale):
    """x / sqrt(mean(x^2) + eps) * scale. Squares, their sum in any order, and the mean are rounded; rsqrtf is within 2 units."""
    n = x.value.shape[-1]
    squares = (x.most() ** 2).mean(-1, keepdims=True)
    mean = (x.value**2).mean(-1, keepdims=True)
    off = squares - mean + gamma(n + 3) * squares
    epsilon = float(np.float32(1e-5))
    root, largest = 1 / np.sqrt(mean + epsilon), 1 / np.sqrt(np.maximum(mean - off, 0) + epsilon)
    root = Bounded(root, largest - root + 5 * U32 * largest)
    value = x.value * root.value * scale.value
    sizes = x.most() * root.most() * np.abs(scale.value)
    return Bounded(value, sizes - np.abs(value) + gamma(2) * sizes)


def added(a, b):
    return Bounded(a.value + b.value, a.error + b.error + U32 * (a.most() + b.most()))


def turned(x, positions=None):
    """Each pair of columns turned by the angle of its token's position, whose cosine and sine are rounded to f32. Angles in double
    precision are off by far less."""
    tokens, columns = x.value.shape
    pair = np.arange(columns // 2) % (HEAD // 2)
    positions = np.arange(tokens) if positions is None else positions
    angles = positions[:, None] * 10000.0 ** (-2.0 * pair / HEAD)
    a, b = (Bounded(x.value[:, odd::2], x.error[:, odd::2]) for odd in (0, 1))
    value, error = np.empty(x.value.shape), np.empty(x.value.shape)
    for odd, (c, s) in enumerate(((np.cos(angles), -np.sin(angles)), (np.sin(angles), np.cos(angles)))):
        value[:, odd::2] = a.value * c + b.value * s
        sizes = a.most() * np.abs(c) + b.most() * np.abs(s)
        passed_on = a.error * np.abs(c) + b.error * np.abs(s)
        error[:, odd::2] = passed_on + gamma(3) * sizes + 2.0**-40 * (a.most() + b.most())
    return Bounded(value, error)


def attended(query, key, value, seen, loss=0.0):
    """softmax(query @ key^T / sqrt(HEAD) - loss) @ value, over the keys that a query has seen, which come in steps of 16 or more.

    Scores are multiplied by the scale and by log2(e), which are rounded, as are both products, the loss and the difference.
    Exponents, and those of the factors that a weight is scaled by when a later step raises the maximum, are rounded: together they are no larger than twice its depth below the maximum. ex2 is
    within 2^-22. Weights are rounded to f16 ahead of the second product, and not in the sum that divides it."""
    tokens, step = query.value.shape[0], 16
    steps = tokens // step + 2
    scores = product(query, Bounded(key.value.T, key.error.T))
    scale, loss = np.log2(np.e) / np.sqrt(HEAD), loss * np.log2(np.e)
    score = np.where(seen, scores.value * scale - loss, -np.inf)
    off = np.where(seen, scores.error * scale + gamma(6) * ((np.abs(scores.value) + scores.error) * scale + loss), 0)
    most = score.max(-1, keepdims=True)
    moved = off.max(-1, keepdims=True) + U32 * np.abs(most)
    assert (moved < 1).all()
    weight, depth = np.exp2(score - most), np.where(seen, most - np.where(seen, score, 0) + 2 * moved, 0)
    relative = np.expm1(np.log(2) * (off + 2 * U32 * depth) + (2.0**-22 + 2 * U32) * (steps + 1))
    additions = U32 * (tokens + 2 * step + steps + 4)
    flushed = TINY32 * (steps + 2)
    total = weight.sum(-1, keepdims=True)
    of_total = (weight * np.expm1(np.log1p(relative) + additions) + 2 * flushed).sum(-1, keepdims=True)
    grown = (1 + relative) * (1 + U16) * (1 + U32 * steps)
    sizes = np.abs(value.value)
    absolute = 2 * (TINY16 + flushed) * (seen @ sizes)
    error = (weight * (grown - 1)) @ sizes + absolute
    error = error + gamma(3 * (tokens + 2 * step)) * ((weight * grown) @ sizes + absolute) + (weight * grown) @ value.error
    mixed = weight @ value.value / total
    # The reciprocal of the sum, and the product with it, are rounded.
    error = (error + np.abs(mixed) * of_total) / (total - of_total) * (1 + 4 * U32) + 4 * U32 * np.abs(mixed)
    return Bounded(mixed, error)


def columns(x, first, count):
    return Bounded(x.value[:, first : first + count], x.error[:, first : first + count])


def attention(turned, qkv, heads, key_heads, seen=None, losses=None):
    """Each head of queries has its own output, and shares keys and values with its group."""
    seen = np.tri(turned.value.shape[0], dtype=bool) if seen is None else seen
    group, parts = heads // key_heads, []
    for head in range(heads):
        of = head // group
        query, key = columns(turned, head * HEAD, HEAD), columns(turned, (heads + of) * HEAD, HEAD)
        value = columns(qkv, (heads + key_heads + of) * HEAD, HEAD)
        parts.append(attended(query, key, value, seen, 0.0 if losses is None else losses[head]))
    return Bounded(*(np.concatenate([getattr(part, of) for part in parts], -1) for of in ("value", "error")))


def gated(x):
    """silu(gate) * up for both halves of the columns: expf is within 2 units, and sum, quotient and product are rounded, the quotient
    within 2 units. The slope of silu is at most 1.1."""
    half = x.value.shape[-1] // 2
    gate, up = columns(x, 0, half), columns(x, half, half)
    silu = gate.value / (1 + np.exp(-gate.value))
    silu = Bounded(silu, 1.1 * gate.error + gamma(10) * (np.abs(silu) + 1.1 * gate.error))
    sizes = silu.most() * up.most()
    value = silu.value * up.value
    return Bounded(value, sizes - np.abs(value) + U32 * sizes + TINY32)


def log_softmax(x):
    """x - max - log(sum(exp(x - max))): expf is within 2 units, logf within 1, a unit being two roundings."""
    greatest, n = x.value.max(-1, keepdims=True), x.value.shape[-1]
    shifted = x.value - greatest
    off = x.error + x.error.max(-1, keepdims=True) + U32 * (np.abs(shifted) + 2 * x.error.max(-1, keepdims=True))
    exps = np.exp(shifted)
    largest = np.exp(shifted + off) * (1 + 4 * U32) + 2.0**-149
    total = exps.sum(-1, keepdims=True)
    of_total = (largest - exps).sum(-1, keepdims=True) + gamma(n) * largest.sum(-1, keepdims=True)
    log = np.log(total)
    of_log = of_total / (total - of_total) + 2 * U32 * (np.abs(log) + of_total) + TINY32
    return Bounded(shifted - log, off + of_log + gamma(2) * (np.abs(shifted) + np.abs(log) + off + of_log))


def steps(read, heads, key_heads):
    """Each step's name, and what is right for what `read` gives of the steps before."""

    def of_blocks(name, of, weights):
        yield of + "_scales", scales_of(read(of))
        yield of + "_8", quantised(read(of), read(of + "_scales"))
        factors = read(of + "_8"), read(of + "_scales"), read(weights + "_weights"), read(weights + "_weight_scales")
        yield name, scaled(*factors).stored()

    ids = read("ids").value.astype(np.int64)
    table = read("table")
    yield "x", Bounded(table.value[ids])
    yield "normal", norm(read("x"), read("attention_norm")).stored()
    yield from of_blocks("qkv", "normal", "qkv")
    yield "turned", turned(columns(read("qkv"), 0, (heads + key_heads) * HEAD)).stored()
    yield "mixed", attention(read("turned"), read("qkv"), heads, key_heads).stored()
    yield from of_blocks("attended", "mixed", "out")
    x1 = added(read("attended"), read("x"))
    yield "x1", x1.stored()
    yield "hidden_normal", norm(x1, read("hidden_norm")).stored()
    yield "router", product(read("hidden_normal"), read("router_weights")).stored()
    yield "expert", chosen(read("router"))
    yield "weight", weights_of(read("router"))
    order, experts = sorted_slots(read("expert")), read("router").value.shape[-1]
    yield "token", Bounded(order[:, None] // CHOSEN)
    yield "slot", Bounded(np.argsort(order).reshape(-1, CHOSEN))
    yield "ends", Bounded((read("expert").value.reshape(-1) <= np.arange(experts)[:, None]).sum(-1, keepdims=True))
    given = Bounded(read("hidden_normal").value[read("token").value.reshape(-1).astype(np.int64)])
    yield "gate_up", grouped(given, read("gate_up_weights"), read("ends")).stored()
    yield "hidden", gated(read("gate_up")).stored()
    yield "down", grouped(read("hidden"), read("down_weights"), read("ends")).stored()
    yield "combined", combined(read("down"), read("slot"), read("weight")).stored()
    y = added(read("combined"), read("x1"))
    yield "y", y.stored()
    yield "final_normal", norm(y, read("final_norm")).stored()
    yield from of_blocks("logits", "final_normal", "unembed")
    yield "log_probabilities", log_softmax(read("logits"))


def make(folder, tokens, vocabulary, features, heads, key_heads, experts, hidden):
    random = np.random.default_rng(1)
    draw = lambda *shape, scale=1.0, around=0.0: (around + scale * random.standard_normal(shape)).astype(np.float16)
    write = lambda name, array: np.save(folder / (name + ".npy"), array)
    write("ids", random.integers(0, vocabulary, tokens, dtype=np.int32))
    write("table", draw(vocabulary, features))
    for name in ("attention_norm", "hidden_norm", "final_norm"):
        write(name, draw(features, scale=0.1, around=1.0))
    # Rows of products as large as x.
    for name, shape in {
        "router": (features, experts),
        "gate_up": (experts, features, 2 * hidden),
        "down": (experts, hidden, features),
    }.items():
        write(name + "_weights", draw(*shape, scale=shape[-2] ** -0.5))
    numbers = e4m3(np.arange(127))
    for name, outputs, inputs in (
        ("qkv", (heads + 2 * key_heads) * HEAD, features),
        ("out", features, heads * HEAD),
        ("unembed", vocabulary, features),
    ):
        weights = draw(outputs, inputs, scale=inputs**-0.5).astype(np.float64)
        most = np.maximum.reduceat(np.abs(weights), range(0, outputs, BLOCK), 0)
        scales = (np.maximum.reduceat(most, range(0, inputs, BLOCK), 1) / 448).astype(np.float32)
        sizes = np.abs(weights) / spread(scales.astype(np.float64), weights.shape, (BLOCK, BLOCK))
        # The nearest number of 8 bits.
        bits = np.searchsorted((numbers[1:] + numbers[:-1]) / 2, sizes)
        write(name + "_weights", (bits + 128 * (weights < 0)).astype(np.uint8))
        write(name + "_weight_scales", scales)


def load(folder, name):
    numbers = np.load(folder / (name + ".npy"))
    return e4m3(numbers) if numbers.dtype == np.uint8 else numbers.astype(np.float64)


def count_wrong(folder, right_steps):
    """Prints how far the file of each step is from what is right for it, and returns how many elements are wrong."""
    wrong = 0
    for name, right in right_steps:
        off = np.abs(load(folder, name) - right.value)
        bad = int((~(off <= right.error)).sum())
        wrong += bad
        part = np.divide(off, right.error, out=np.zeros_like(off), where=right.error > 0)
        print(f"{name}: {bad} of {off.size} elements wrong, off by {part.max(initial=0):.3f} of their bounds at most")
    return wrong


def check(folder, heads, key_heads):
    wrong, whole = count_wrong(folder, steps(lambda name: Bounded(load(folder, name)), heads, key_heads)), {}
    # Without any rounding between the steps, for whoever wants to know.
    for name, right in steps(lambda name: Bounded(whole[name] if name in whole else load(folder, name)), heads, key_heads):
        whole[name] = right.value
    away = np.abs(load(folder, "log_probabilities") - whole["log_probabilities"]).max(initial=0)
    print(f"log_probabilities are off by {away:.5f} at most from the decoder in double precision")
    return 0 if wrong == 0 else 1


if __name__ == "__main__":
    command, folder, *numbers = sys.argv[1:]
    numbers = [int(number) for number in numbers]
    sys.exit({"make": make, "check": check}[command](Path(folder), *numbers))
