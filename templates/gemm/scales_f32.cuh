      barriers.empty[pipe.stage].wait(pipe.phase ^ 1);  // on a new barrier, a wait for the previous phase returns at once
      Tensor tSsS_k = tSsS(_,_,_,pipe.stage);                                                  // (CPY,CPY_GRANULES,_1)
      CUTE_UNROLL
      for (int i = 0; i < size(tScS); ++i) {
        if (lane < size(copy)) {
          bool const is_inside = row + i * size(copy) * Granule < end;
          SM80_CP_ASYNC_CACHEALWAYS_ZFILL<float>::copy(next[i * apart], tSsS_k(i), is_inside);
        }
      }
      next += stride<1>(gS);
      // Every lane arrives when its copies are there.
      cutlass::arch::cpasync_barrier_arrive_noinc(reinterpret_cast<uint64_t*>(&barriers.full[pipe.stage]));
