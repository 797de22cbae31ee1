#!/bin/sh
# Emits `block_2d`, compiles it with the same kernel by hand, and runs both in turns: sgemm_by_hand.sh CUTLASS_INCLUDE [folder]
# Needs a GPU, and nvcc in PATH or NVCC.
set -eu
include=${1:?the include folder of CUTLASS}
out=${2:-target/sgemm_by_hand}
here=$(dirname "$0")
cargo run --quiet -- emit sgemm --set variant=block_2d --name sgemm_block_2d_tt --out "$out"
"${NVCC:-nvcc}" -std=c++17 -O3 --expt-relaxed-constexpr -arch=native -I "$include" -I "$out" -I "$here" \
  -o "$out/by_hand" "$here/sgemm_by_hand.cu"
"$out/by_hand"
