{% include "rows/ahead.cuh" %}
  int const tiles = ceil_div(params.m, size<0>(Tile{}));
  for (int tile = first; tile < tiles; tile += step) {
    ask<Walk>(params, tile + (Stages - 1) * step, rank, (columns.slot + Stages - 1) % Stages);
    cp_async_wait<Stages - 1>();
    traverse<Walk>(params, tile, rank, columns);
    columns.slot = (columns.slot + 1) % Stages;
    if constexpr (Meets) {
      __syncthreads();  // every warp has read what the next tile overwrites
    }
  }
