  //
  // Mainloop
  //

  Tensor tOrO = partition_fragment_C(output_mma, TileO{});                                      // (MMA,MMA_M,MMA_N)
  clear(tOrO);
  Tensor cS = make_identity_tensor(TileS{});                                                   // (BM,BN) -> (query,key)
  Tensor rows_c = by_rows(thr_scores.partition_C(cS));                                         // (ROWS,COLUMNS) -> (query,key)
  Softmax<decltype(size<0>(rows_c))::value> softmax;
  Scoring const scoring(params);
{%- if c.emptied().is_some() %}
  Walk walk(all);
  CUTE_NO_UNROLL
  for (int i = 0, step = walk.next(); step < all.count; ++i, step = walk.next()) {
{%- else %}
  CUTE_NO_UNROLL
  for (int i = 0; i < all.count; ++i) {
{%- endif %}
    cp_async_wait<2 * (stages - 1)>();
    __syncthreads();  // K of this step has arrived, and all warps have read V of the step before
    load_v(i + stages - 1);
    Tensor tSrS = partition_fragment_C(scores_mma, TileS{});                                      // (MMA,MMA_M,MMA_N)
    clear(tSrS);
    CUTE_UNROLL
    for (int k = 0; k < size<2>(tSrQ); ++k) {
      copy_all(ldsm_q, tXsQ(_,_,k), tXrQ(_,_,k));
      copy_all(ldsm_k, tXsK(_,_,k,i % stages), tXrK(_,_,k));
      gemm(scores_mma, tSrQ(_,_,k), tSrK(_,_,k), tSrS);
    }
    Tensor rows_s = by_rows(tSrS);                                                             // (ROWS,COLUMNS)
    scoring.apply(params, work, rows_s, rows_c, all.key([[ c.step("i", "step") ]]));
    all.hide(rows_s, rows_c, [[ c.step("i", "step") ]]);
    cp_async_wait<2 * (stages - 1)>();
    __syncthreads();  // V of this step has arrived, and all warps have read K
    load_k(i + stages);
    softmax.step(rows_s, scoring.scale);
    softmax.rescale(by_rows(tOrO));
    Tensor tSrP = rounded(tSrS);                                                               // (MMA,MMA_M,MMA_N)
    Tensor tOrP = as_factor(tSrP);                                                             // (MMA,MMA_M,MMA_K)
    CUTE_UNROLL
    for (int k = 0; k < size<2>(tOrV); ++k) {
      copy_all(ldsm_v, tXsV(_,_,k,i % stages), tXrV(_,_,k));
      gemm(output_mma, tOrP(_,_,k), tOrV(_,_,k), tOrO);
    }
  }
