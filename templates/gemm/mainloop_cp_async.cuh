  //
  // Mainloop: STAGES - 1 k-tiles are on their way while one is computed on
  //

  constexpr int stages = size<2>(SmemA{});
  auto const load = [&](int k_tile, int stage) {
    if (k_tile < k_tiles) {
      // Not every tile has a vector for each thread.
      if (size(copy_a) == size(mma) || threadIdx.x < size(copy_a)) {
        copy_inside(copy_a, tAgA(_,_,_,k_tile), tAcA(_,_,_,k_tile), shape(mA), tAsA(_,_,_,stage));
      }
      if (size(copy_b) == size(mma) || threadIdx.x < size(copy_b)) {
        copy_inside(copy_b, tBgB(_,_,_,k_tile), tBcB(_,_,_,k_tile), shape(mB), tBsB(_,_,_,stage));
      }
    }
    cp_async_fence();  // a group for each k-tile, though it be empty, so that the waits count them
  };

  CUTE_UNROLL
  for (int stage = 0; stage < stages - 1; ++stage) {
    load(stage, stage);
  }
  int smem_pipe_read = 0;
  int smem_pipe_write = stages - 1;
  constexpr int k_blocks = size<2>(tCrA);
  auto const fetch = [&](int k) {
    copy(ldsm_a, tXsA(_,_,k,smem_pipe_read), tXrA(_,_,k));
    copy(ldsm_b, tXsB(_,_,k,smem_pipe_read), tXrB(_,_,k));
  };
  auto const multiply = [&](int k) {
{% if c.rounds() %}    round(tCrA(_,_,k));
    round(tCrB(_,_,k));
{% endif %}    gemm(mma, tCrA(_,_,k), tCrB(_,_,k), tCrC);
  };
  // Where there are registers for more, fragments are fetched while those before are multiplied, also across the end of a k-tile.
  constexpr bool ahead = [[ c.fetches_ahead() ]];
  if (k_tiles > 0) {
    cp_async_wait<stages - 2>();
    __syncthreads();  // the first k-tile of all threads is there
    if (ahead) {
      fetch(0);
    }
  }

  CUTE_NO_UNROLL
  for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
    load(k_tile + stages - 1, smem_pipe_write);
    smem_pipe_write = smem_pipe_read;
    CUTE_UNROLL
    for (int k = ahead; k < k_blocks; ++k) {
      fetch(k);
      multiply(k - ahead);
    }
    smem_pipe_read = smem_pipe_read + 1 == stages ? 0 : smem_pipe_read + 1;
    cp_async_wait<stages - 2>();
    __syncthreads();  // the next k-tile of all threads is there, and the stage that is written next was read by all
    if (ahead) {
      if (k_tile + 1 < k_tiles) {
        fetch(0);
      }
      multiply(k_blocks - 1);
    }
  }
