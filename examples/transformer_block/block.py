"""Inputs of a transformer block, and what is right for them.

  python3 block.py make FOLDER TOKENS FEATURES HEADS HIDDEN
  python3 block.py check FOLDER HEADS

`check` goes through the block step by step. Each is computed in double precision from what the step before left in its file, with a bound for
every element of how far the kernels' may be from it: by what they round, which IEEE 754, the CUDA C++ Programming Guide (mathematical functions)
and the width of tensor cores' sums say. Errors are those of one step, so that a bound is little more than the rounding to f16.
"""

import math
import sys
from pathlib import Path

import numpy as np

# Relative errors of one rounding to f16 and to f32; half of the least f16.
U16, U32, TINY16 = 2.0**-11, 2.0**-24, 2.0**-25


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
        assert self.most().max() < 65504
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


def added(a, *others):
    """A sum in f32, from left to right."""
    value, error, sizes = a.value, a.error, a.most()
    for other in others:
        value, error, sizes = value + other.value, error + other.error, sizes + other.most()
    return Bounded(value, error + gamma(len(others)) * sizes)


def mean(x):
    """Terms are multiplied by 1/n, which is rounded too, and added in any order."""
    n = x.value.shape[-1]
    error = x.error.mean(-1) + gamma(n + 2) * x.most().mean(-1)
    return Bounded(x.value.mean(-1)[..., None], error[..., None])


def norm(x, scale, shift):
    n, middle = x.value.shape[-1], mean(x)
    away = Bounded(x.value - middle.value, x.error + middle.error)
    squares = away.value**2
    error = (away.most() ** 2 - squares).mean(-1) + gamma(n + 6) * (away.most() ** 2).mean(-1)
    variance = Bounded(squares.mean(-1)[..., None], error[..., None])
    epsilon = float(np.float32(1e-5))
    root = 1 / np.sqrt(variance.value + epsilon)
    # The largest where the variance is the least; rsqrtf is within 2 units, the sum is rounded once.
    largest = 1 / np.sqrt(np.maximum(variance.value - variance.error, 0) + epsilon)
    root = Bounded(root, largest - root + 5 * U32 * largest)
    value = away.value * root.value * scale.value + shift.value
    sizes = away.most() * root.most() * np.abs(scale.value)
    passed_on = sizes - np.abs(away.value * root.value * scale.value)
    return Bounded(value, passed_on + gamma(4) * (sizes + np.abs(shift.value)))


def softmax(scores):
    """exp(s) / sum(exp(s)), each s less the greatest of its row, whichever that is: it cancels out. The difference is rounded once. expf is
    within 2 units, which are four roundings; where it is less than every f32, it may be 0."""
    greatest = scores.value.max(-1)[..., None]
    shifted = scores.value - greatest
    off = scores.error + U32 * (np.abs(shifted) + scores.error + scores.error.max(-1)[..., None])
    exps, largest = np.exp(shifted), np.exp(shifted + off) + 2.0**-149
    exps, n = Bounded(exps, largest * (1 + 4 * U32) - exps), scores.value.shape[-1]
    total = exps.value.sum(-1)[..., None]
    off = exps.error.sum(-1)[..., None] + gamma(n) * exps.most().sum(-1)[..., None]
    parts = exps.value / total
    assert (total > off).all()
    return Bounded(parts, exps.most() / (total - off) - parts + 2 * U32 * exps.most() / (total - off))


def gelu(x):
    """0.5 x (1 + erf(x / sqrt(2))): its slope is at most 1.13. erff is within 2 units of a number up to 1; argument, sum and products are
    rounded once each: 8 roundings of numbers up to |x|."""
    value = 0.5 * x.value * (1 + np.vectorize(math.erf)(x.value / np.sqrt(2)))
    return Bounded(value, 1.13 * x.error + 8 * U32 * x.most())


def linear(x, weights, bias, residual=None):
    terms = [residual] if residual is not None else []
    return added(product(x, weights), *terms, bias)


def split(x, heads):
    return Bounded(*(np.stack(np.split(part, heads, -1)) for part in (x.value, x.error)))


def attention(query, key, heads):
    query, key = split(query, heads), split(key, heads)
    turned = Bounded(key.value.transpose(0, 2, 1), key.error.transpose(0, 2, 1))
    scores, scale = product(query, turned), 1 / np.sqrt(query.value.shape[-1])
    # The scale is rounded, and so is what it multiplies.
    return softmax(Bounded(scores.value * scale, (scores.error + gamma(2) * scores.most()) * scale))


def mix(parts, value, heads):
    mixed = product(parts, split(value, heads))
    return Bounded(*(np.concatenate(list(part), -1) for part in (mixed.value, mixed.error)))


def steps(read, heads):
    """Each step's name, and what is right for what `read` gives of the steps before."""

    def by(name):
        return read(name + "_weights"), read(name + "_bias")

    yield "normal", norm(read("x"), read("attention_norm_scale"), read("attention_norm_shift")).stored()
    for name in ("query", "key", "value"):
        yield name, linear(read("normal"), *by(name)).stored()
    yield "parts", attention(read("query"), read("key"), heads).stored()
    yield "mixed", mix(read("parts"), read("value"), heads).stored()
    yield "x1", linear(read("mixed"), *by("out"), read("x")).stored()
    yield "hidden_normal", norm(read("x1"), read("hidden_norm_scale"), read("hidden_norm_shift")).stored()
    yield "hidden", gelu(linear(read("hidden_normal"), *by("expand"))).stored()
    yield "y", linear(read("hidden"), *by("contract"), read("x1")).stored()


def make(folder, tokens, features, heads, hidden):
    random = np.random.default_rng(1)
    draw = lambda *shape, scale=1.0, around=0.0: (around + scale * random.standard_normal(shape)).astype(np.float16)
    write = lambda name, array: np.save(folder / (name + ".npy"), array)
    write("x", draw(tokens, features))
    for name in ("attention_norm", "hidden_norm"):
        write(name + "_scale", draw(features, scale=0.1, around=1.0))
        write(name + "_shift", draw(features, scale=0.1))
    shapes = {name: (features, features) for name in ("query", "key", "value", "out")}
    for name, shape in {**shapes, "expand": (features, hidden), "contract": (hidden, features)}.items():
        # Rows of products as large as x.
        write(name + "_weights", draw(*shape, scale=shape[0] ** -0.5))
        write(name + "_bias", draw(shape[1], scale=0.1))


def check(folder, heads):
    def load(name):
        return np.load(folder / (name + ".npy")).astype(np.float64)

    wrong, whole = 0, {}
    for name, right in steps(lambda name: Bounded(load(name)), heads):
        off = np.abs(load(name).reshape(right.value.shape) - right.value)
        bad = int((~(off <= right.error)).sum())
        wrong += bad
        print(f"{name}: {bad} of {off.size} elements wrong, off by {(off / right.error).max():.3f} of their bounds at most")
    # Without any rounding between the steps, for whoever wants to know.
    for name, right in steps(lambda name: Bounded(whole[name] if name in whole else load(name)), heads):
        whole[name] = right.value
    print(f"y is off by {np.abs(load('y') - whole['y']).max():.5f} at most from the block in double precision")
    return 0 if wrong == 0 else 1


if __name__ == "__main__":
    command, folder, *numbers = sys.argv[1:]
    numbers = [int(number) for number in numbers]
    sys.exit({"make": make, "check": check}[command](Path(folder), *numbers))
