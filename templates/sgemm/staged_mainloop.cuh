  //
  // Mainloop: registers hold the columns of sA and sB one k ahead, shared memory holds tiles STAGES-1 ahead
  //

  auto const next = [](int stage) { return stage + 1 == size<2>(SmemA{}) ? 0 : stage + 1; };
  auto const main_loop = [&](auto const& load) {
    CUTE_UNROLL
    for (int stage = 1; stage < size<2>(SmemA{}) - 1; ++stage) {
      CUTE_UNROLL
      for (int k = 0; k < size<2>(tCsA); ++k) {
        load(k_tile_begin + stage, k, stage);
      }
      cp_async_fence();
    }
    int read = 0;
    int write = size<2>(SmemA{}) - 1;
    cp_async_wait<size<2>(SmemA{}) - 2>();
    __syncthreads();  // all threads' copies of the first tiles have arrived
    copy_all(LoadB{}, tCsB(_,_,0,read), tCrB(_,_,0));
    copy_all(LoadA{}, tCsA(_,_,0,read), tCrA(_,_,0));

    CUTE_NO_UNROLL
    for (int k_tile = k_tile_begin; k_tile < k_tile_end; ++k_tile) {
      CUTE_UNROLL
      for (int k = 0; k < size<2>(tCsA); ++k) {
        int const k_next = (k + 1) % size<2>(tCsA);
        if (k_next == 0) {
          cp_async_fence();
          write = next(write);
          cp_async_wait<size<2>(SmemA{}) - 2>();
          __syncthreads();  // all copies of the next tiles have arrived, and all threads have read this one
          read = k_tile + 1 < k_tile_end ? next(read) : read;  // after the last tile there is nothing to read
        }
        copy_all(LoadB{}, tCsB(_,_,k_next,read), tCrB(_,_,(k + 1) % 2));
        load(k_tile + size<2>(SmemA{}) - 1, k, write);
        copy_all(LoadA{}, tCsA(_,_,k_next,read), tCrA(_,_,(k + 1) % 2));
        if constexpr (WarpSync) {
          __syncwarp();
        }
        gemm(mma, tCrA(_,_,k % 2), tCrB(_,_,k % 2), tCrC);
      }
    }
    cp_async_wait<0>();
  };

  // Spreads a tile's copies over the first half of its k, to issue them between products. This issues the copies of one k.
  auto const spread = [](auto copies, int k, auto const& copy_one) {
    constexpr int each = ceil_div(decltype(copies)::value, int(size<1>(TileA{})) / 2);
    CUTE_UNROLL
    for (int i = k * each; i < (k + 1) * each && i < copies; ++i) {
      copy_one(i);
    }
  };

  if (k_tile_begin < k_tile_end) {
    // Predicates along M and N, the same for all k-tiles: elements of each vector that lie in the matrix
    Tensor tAcA = thr_copy_a.partition_S(make_identity_tensor(TileA{}))(_0{},_,_);              // (CPY_M,CPY_K) -> (m,k)
    Tensor tApA = make_tensor<int>(make_shape(size<0>(tAcA), size<1>(tAcA)), Stride<_1,_0>{});  // (CPY_M,CPY_K)
    CUTE_UNROLL
    for (int m = 0; m < size<0>(tApA); ++m) {
      tApA(m, 0) = params.m - tile_m * size<0>(TileA{}) - get<0>(tAcA(m, 0));
    }
    Tensor tBcB = thr_copy_b.partition_S(make_identity_tensor(TileB{}))(_0{},_,_);              // (CPY_N,CPY_K) -> (n,k)
    Tensor tBpB = make_tensor<int>(make_shape(size<0>(tBcB), size<1>(tBcB)), Stride<_1,_0>{});  // (CPY_N,CPY_K)
    CUTE_UNROLL
    for (int n = 0; n < size<0>(tBpB); ++n) {
      tBpB(n, 0) = params.n - tile_n * size<0>(TileB{}) - get<0>(tBcB(n, 0));
    }

    // The first k-tile holds K's residue, so it also needs a predicate along K
    int const begin_k = k_tile_begin == 0 ? -residue_k : 0;
    CUTE_UNROLL
    for (int i = 0; i < size<1>(tAsA); ++i) {
      int const inside = get<1>(tAcA(i)) < begin_k ? 0 : tApA(i);
      copy_residue(copy_a, [[ c.vectors(0) ]], inside, tAgA(_,i,k_tile_begin), tAsA(_,i,0));
    }
    CUTE_UNROLL
    for (int i = 0; i < size<1>(tBsB); ++i) {
      int const inside = get<1>(tBcB(i)) < begin_k ? 0 : tBpB(i);
      copy_residue(copy_b, [[ c.vectors(1) ]], inside, tBgB(_,i,k_tile_begin), tBsB(_,i,0));
    }
    cp_async_fence();

    // A CTA runs one of two loops, for whole tiles or with predicates; switching between them would stall instruction fetch.
    // The loop for whole tiles copies the last k-tile again instead of branching, so that k-tile must have no residue.
    if (params.m % size<0>(TileD{}) == 0 && params.n % size<1>(TileD{}) == 0 &&
        (residue_k == 0 || k_tile_end > 1){% for told in c.told_of_factors() %} && [[ told ]]{% endfor %}) {
      main_loop([&](int k_tile, int k, int stage) {
        int const k_tile_in = cute::min(k_tile, k_tile_end - 1);
        spread(size<1>(tAsA), k, [&](int i) { copy_all(copy_a, tAgA(_,i,k_tile_in), tAsA(_,i,stage)); });
        spread(size<1>(tBsB), k, [&](int i) { copy_all(copy_b, tBgB(_,i,k_tile_in), tBsB(_,i,stage)); });
      });
    } else {
      main_loop([&](int k_tile, int k, int stage) {
        if (k == 0 && k_tile >= k_tile_end) {
          clear(tApA);
          clear(tBpB);
        }
        spread(size<1>(tAsA), k, [&](int i) {
          copy_residue(copy_a, [[ c.vectors(0) ]], tApA(i), tAgA(_,i,k_tile), tAsA(_,i,stage));
        });
        spread(size<1>(tBsB), k, [&](int i) {
          copy_residue(copy_b, [[ c.vectors(1) ]], tBpB(i), tBgB(_,i,k_tile), tBsB(_,i,stage));
        });
      });
    }
  }
