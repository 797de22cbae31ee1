  if (params.scale <= 0) {
    // Maxima are those of scaled scores: the sign of the scale, or 0, is Q's. A thread waits for what it has copied itself.
    cp_async_wait<0>();
    if (size(copy_q) == size(Scores{}) || threadIdx.x < size(copy_q)) {
      CUTE_UNROLL
      for (int i = 0; i < size(tQsQ); ++i) {
        tQsQ(i) = Element(params.scale < 0 ? -float(tQsQ(i)) : 0 * float(tQsQ(i)));
      }
    }
  }
  CUTE_UNROLL
  for (int i = 0; i < stages - 1; ++i) {
    load_k(i);
    load_v(i);
  }
  load_k(stages - 1);
