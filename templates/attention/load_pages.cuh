  __shared__ Pages::Offsets offsets;
  Pages pages(params, work.batch, offsets);
  auto const ptr_Q = static_cast<Element const*>(params.q) + work.q.sequence * params.q_[[ c.recipe.modes("o")[0] ]];
  auto const ptr_K = static_cast<[[ c.stored("K") ]] const*>(params.k) + work.k.head * params.k_head;
  auto const ptr_V = static_cast<[[ c.stored("V") ]] const*>(params.v) + work.k.head * params.v_head;
{%- if c.emptied().is_some() %}
  Walk of_k(all);
  Walk of_v(of_k);
{%- endif %}
  // Steps of K come one after the other, and each before its V.
{%- let step_of_k = c.step("i", "of_k.now") %}
  auto const load_k = [&](int i) {
    if ([[ c.step("i", "of_k.next()") ]] < all.count) {
      pages.give(i, all.key([[ step_of_k ]]));
      auto const row = [&](int key) { return ptr_K + offsets[i % 2][0][key]; };
      copy_rows<0>(copy_k, row, tKcK, make_coord(work.len_k - all.key([[ step_of_k ]]), Head{}), tKsK(_,_,_,i % stages));
      if ([[ c.step("i + 1", "of_k.after") ]] < all.count) {
        pages.ask(all.key([[ c.step("i + 1", "of_k.after") ]]));
      }
    }
    cp_async_fence();  // one group per step, even an empty one: the waits count groups
  };
{%- let step_of_v = c.step("i", "of_v.now") %}
  auto const load_v = [&](int i) {
    if ([[ c.step("i", "of_v.next()") ]] < all.count) {
      auto const row = [&](int key) { return ptr_V + offsets[i % 2][1][key]; };
      copy_rows<1>(copy_v, row, tVcV, make_coord(Value{}, work.len_k - all.key([[ step_of_v ]])), tVsV(_,_,_,i % stages));
    }
    cp_async_fence();
  };
  if ([[ c.step("0", "of_k.after") ]] < all.count) {
    pages.ask(all.key([[ c.step("0", "of_k.after") ]]));
  }
  auto const row_of_q = [&](int row) { return ptr_Q + (work.query(row) * params.q_row + work.head(row) * params.q_head); };
  copy_rows<0>(copy_q, row_of_q, tQcQ, make_coord(work.rows() - work.first, Head{}), tQsQ);
