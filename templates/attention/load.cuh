  auto const load = [&](auto const& copy, auto const& src, auto const& crd, auto const& bounds, auto&& dst) {
    if (size(copy) == size(Scores{}) || threadIdx.x < size(copy)) {
      copy_inside(copy, src, crd, bounds, dst);
    }
  };
  auto const load_k = [&](int i) {
    if (i < all.count) {
      int const at = all.at(i);
      load(copy_k, tKgK(_,_,_,at), thr_copy_k.partition_S(cK(_,_,at)), shape(mK), tKsK(_,_,_,i % stages));
    }
    cp_async_fence();  // one group per step, even an empty one: the waits count groups
  };
  auto const load_v = [&](int i) {
    if (i < all.count) {
      int const at = all.at(i);
      load(copy_v, tVgV(_,_,_,at), thr_copy_v.partition_S(cV(_,_,at)), shape(mV), tVsV(_,_,_,i % stages));
    }
    cp_async_fence();
  };
  load(copy_q, tQgQ, thr_copy_q.partition_S(cQ), shape(mQ), tQsQ);
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
