"""Inputs of a transformer that embeds sequences, and what is right for them.

  python3 embed.py make FOLDER FEATURES HEADS KEY_HEADS HIDDEN LAYERS LENGTH..
  python3 embed.py check FOLDER HEADS KEY_HEADS CAUSAL LEFT RIGHT

As in decoder.py, `check` computes each step in double precision from what the step before left, with a bound for every element.
"""

import sys
from pathlib import Path

import numpy as np

from decoder import HEAD, Bounded, added, attention, columns, count_wrong, gated, load, norm, product, turned

VOCABULARY = 200


def sight(starts, causal, left, right):
    """The position of each token in its sequence, and the tokens that each one sees."""
    tokens = np.arange(starts[-1])
    sequence = np.searchsorted(starts, tokens, side="right") - 1
    position = tokens - starts[sequence]
    ahead = position[:, None] - position
    seen = (sequence[:, None] == sequence) & ((ahead <= left) | (left < 0))
    return position, seen & ((-ahead <= right) | (right < 0)) & ((ahead >= 0) | (not causal))


def steps(read, heads, key_heads, causal, left, right):
    """Each step's name, and what is right for what `read` gives of the steps before."""
    starts = read("starts").value.astype(np.int64)
    position, seen = sight(starts, causal, left, right)
    losses = read("slopes").value[:, None, None] * np.abs(position[:, None] - position)
    of = lambda name, layer: Bounded(read(name).value[layer])
    yield "x", Bounded(read("table").value[read("ids").value.astype(np.int64)])
    yield "normal", norm(read("x"), of("norms", 0)).stored()
    x, normal = "x", "normal"
    for layer in range(read("down_weights").value.shape[0]):
        step = lambda name: f"{layer}_{name}"
        yield step("qkv"), product(read(normal), of("qkv_weights", layer)).stored()
        yield step("turned"), turned(columns(read(step("qkv")), 0, (heads + key_heads) * HEAD), position).stored()
        mixed = attention(read(step("turned")), read(step("qkv")), heads, key_heads, seen, losses)
        yield step("mixed"), mixed.stored()
        yield step("attended"), product(read(step("mixed")), of("out_weights", layer)).stored()
        x1 = added(read(step("attended")), read(x))
        yield step("x1"), x1.stored()
        yield step("hidden_normal"), norm(x1, of("hidden_norms", layer)).stored()
        yield step("gate_up"), product(read(step("hidden_normal")), of("gate_up_weights", layer)).stored()
        yield step("hidden"), gated(read(step("gate_up"))).stored()
        yield step("down"), product(read(step("hidden")), of("down_weights", layer)).stored()
        y = added(read(step("down")), read(step("x1")))
        yield step("y"), y.stored()
        yield step("next_normal"), norm(y, of("norms", layer + 1)).stored()
        x, normal = step("y"), step("next_normal")
    yield "embeddings", Bounded(read(normal).value[starts[:-1]])


def make(folder, features, heads, key_heads, hidden, layers, *lengths):
    random = np.random.default_rng(2)
    draw = lambda *shape, scale=1.0, around=0.0: (around + scale * random.standard_normal(shape)).astype(np.float16)
    write = lambda name, array: np.save(folder / (name + ".npy"), array)
    starts = np.cumsum([0, *lengths], dtype=np.int32)
    write("starts", starts)
    write("ids", random.integers(0, VOCABULARY, starts[-1], dtype=np.int32))
    write("table", draw(VOCABULARY, features))
    write("norms", draw(layers + 1, features, scale=0.1, around=1.0))
    write("hidden_norms", draw(layers, features, scale=0.1, around=1.0))
    # Slopes of ALiBi, as its authors draw them; 0 is a head without.
    write("slopes", (2.0 ** (-8 * np.arange(1, heads + 1) / heads)).astype(np.float32))
    for name, inputs, outputs in (
        ("qkv", features, (heads + 2 * key_heads) * HEAD),
        ("out", heads * HEAD, features),
        ("gate_up", features, 2 * hidden),
        ("down", hidden, features),
    ):
        # Rows of products as large as x.
        write(name + "_weights", draw(layers, inputs, outputs, scale=inputs**-0.5))


def check(folder, *of):
    return 0 if count_wrong(folder, steps(lambda name: Bounded(load(folder, name)), *of)) == 0 else 1


if __name__ == "__main__":
    command, folder, *numbers = sys.argv[1:]
    numbers = [int(number) for number in numbers]
    sys.exit({"make": make, "check": check}[command](Path(folder), *numbers))
