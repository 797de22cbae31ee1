  Pages const pages(params, work.batch);
  auto const ptr_Q = static_cast<Element const*>(params.q) + work.batch * params.q_batch;
  auto const ptr_K = static_cast<Element const*>(params.k) + work.key_head * params.k_head;
  auto const ptr_V = static_cast<Element const*>(params.v) + work.key_head * params.v_head;
  auto const load_k = [&](int i) {
    if (i < all.count) {
      int const first = all.key(i);
      auto const row = [&](int key) { return ptr_K + pages.offset(first + key, params.k_page, params.k_row); };
      copy_rows<0>(copy_k, row, tKcK, make_coord(work.len_k - first, Head{}), tKsK(_,_,_,i % stages));
    }
    cp_async_fence();  // one group per step, even an empty one: the waits count groups
  };
  auto const load_v = [&](int i) {
    if (i < all.count) {
      int const first = all.key(i);
      auto const row = [&](int key) { return ptr_V + pages.offset(first + key, params.v_page, params.v_row); };
      copy_rows<1>(copy_v, row, tVcV, make_coord(Value{}, work.len_k - first), tVsV(_,_,_,i % stages));
    }
    cp_async_fence();
  };
  auto const row_of_q = [&](int row) { return ptr_Q + (work.query(row) * params.q_row + work.head(row) * params.q_head); };
  copy_rows<0>(copy_q, row_of_q, tQcQ, make_coord(work.rows() - work.first, Head{}), tQsQ);
