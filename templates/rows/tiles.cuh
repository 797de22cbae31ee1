  int const tiles = ceil_div(params.m, size<0>(Tile{}));
  for (int tile = first; tile < tiles; tile += step) {
    traverse<Walk>(params, tile, rank, columns);
    if constexpr (Meets) {
      __syncthreads();  // every warp has read what the next tile overwrites
    }
  }
