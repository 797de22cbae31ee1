      // They arrive while the stage is still read.
      uint8_t exponents[decltype(size(tScS))::value];
      CUTE_UNROLL
      for (int i = 0; i < size(tScS); ++i) {
        bool const is_inside = lane < size(copy) && row + i * size(copy) * Granule < end;
        exponents[i] = is_inside ? next[i * apart] : 0;
      }
      barriers.empty[pipe.stage].wait(pipe.phase ^ 1);  // on a new barrier, a wait for the previous phase returns at once
      Tensor tSsS_k = tSsS(_,_,_,pipe.stage);                                                  // (CPY,CPY_GRANULES,_1)
      CUTE_UNROLL
      for (int i = 0; i < size(tScS); ++i) {
        if (lane < size(copy)) {
          tSsS_k(i) = power_of_two(exponents[i]);
        }
      }
      next += stride<1>(gS);
      barriers.full[pipe.stage].arrive();
