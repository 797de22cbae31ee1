  auto const load = [&](auto const& copy, auto const& src, auto const& crd, auto const& bounds, auto&& dst) {
    if (size(copy) == size(Scores{}) || threadIdx.x < size(copy)) {
      copy_inside(copy, src, crd, bounds, dst);
    }
  };
{%- if c.emptied().is_some() %}
  Walk of_k(all);
  Walk of_v(of_k);
{%- endif %}
  auto const load_k = [&](int i) {
    if ([[ c.step("i", "of_k.next()") ]] < all.count) {
      int const at = all.at([[ c.step("i", "of_k.now") ]]);
      load(copy_k, tKgK(_,_,_,at), thr_copy_k.partition_S(cK(_,_,at)), shape(mK), tKsK(_,_,_,i % stages));
    }
    cp_async_fence();  // one group per step, even an empty one: the waits count groups
  };
  auto const load_v = [&](int i) {
    if ([[ c.step("i", "of_v.next()") ]] < all.count) {
      int const at = all.at([[ c.step("i", "of_v.now") ]]);
      load(copy_v, tVgV(_,_,_,at), thr_copy_v.partition_S(cV(_,_,at)), shape(mV), tVsV(_,_,_,i % stages));
    }
    cp_async_fence();
  };
  load(copy_q, tQgQ, thr_copy_q.partition_S(cQ), shape(mQ), tQsQ);
