// The mainloop over steps of keys, from the last to the first, so that steps with a mask come first. Every warp copies, and
// multiplies its own queries. K and V have rings of their own: while one is multiplied, cp.async fills the other.
CUTE_DEVICE
void
attend(Params const& params, Work const& work, SharedStorage& shared)
{
  //
  // Tensors
  //

{% for t in c.rows %}{% include "attention/rows.cuh" %}
{% endfor %}  auto const shape_Q = make_shape(work.len_q, Head{});
  auto const shape_K = make_shape(work.len_k, Head{});
  auto const shape_V = make_shape(Value{}, work.len_k);
  Tensor mQ = make_tensor(make_gmem_ptr(ptr_Q), shape_Q, make_stride(params.q_row, _1{}));     // (SQ,D)
  Tensor mK = make_tensor(make_gmem_ptr(ptr_K), shape_K, make_stride(params.k_row, _1{}));     // (SK,D)
  Tensor mV = make_tensor(make_gmem_ptr(ptr_V), shape_V, make_stride(_1{}, params.v_row));     // (DV,SK)
  auto const tile_q = make_coord(work.first / size<0>(TileQ{}), _0{});
  Tensor gQ = local_tile(mQ, TileQ{}, tile_q);                                                 // (BM,D)
  Tensor gK = local_tile(mK, TileK{}, make_coord(_, _0{}));                                      // (BN,D,steps)
  Tensor gV = local_tile(mV, TileV{}, make_coord(_0{}, _));                                      // (DV,BN,steps)
  Tensor cQ = local_tile(make_identity_tensor(shape(mQ)), TileQ{}, tile_q);                    // (BM,D) -> (query,element)
  Tensor cK = local_tile(make_identity_tensor(shape(mK)), TileK{}, make_coord(_, _0{}));         // (BN,D,steps) -> (key,element)
  Tensor cV = local_tile(make_identity_tensor(shape(mV)), TileV{}, make_coord(_0{}, _));         // (DV,BN,steps) -> (element,key)
  Tensor sQ = make_tensor(make_smem_ptr(shared.stages.q), SmemQ{});                              // (BM,D,1)
  Tensor sK = make_tensor(make_smem_ptr(shared.stages.k), SmemK{});                              // (BN,D,STAGES)
  Tensor sV = make_tensor(make_smem_ptr(shared.stages.v), SmemV{});                              // (DV,BN,STAGES)

  //
  // Partition: this thread's share of the copies and of the MMAs
  //

  CopyQ const copy_q;
  CopyK const copy_k;
  CopyV const copy_v;
  auto const thr_copy_q = copy_q.get_slice(threadIdx.x);
  auto const thr_copy_k = copy_k.get_slice(threadIdx.x);
  auto const thr_copy_v = copy_v.get_slice(threadIdx.x);
  Tensor tQgQ = thr_copy_q.partition_S(gQ);                                                    // (CPY,CPY_M,CPY_K)
  Tensor tQsQ = partition_D(copy_q, threadIdx.x, sQ)(_,_,_,_0{});                                // (CPY,CPY_M,CPY_K)
  Tensor tKgK = thr_copy_k.partition_S(gK);                                                    // (CPY,CPY_N,CPY_K,steps)
  Tensor tKsK = partition_D(copy_k, threadIdx.x, sK);                                          // (CPY,CPY_N,CPY_K,STAGES)
  Tensor tVgV = thr_copy_v.partition_S(gV);                                                    // (CPY,CPY_N,CPY_K,steps)
  Tensor tVsV = partition_D(copy_v, threadIdx.x, sV);                                          // (CPY,CPY_N,CPY_K,STAGES)

{% if c.recipe.is_narrow() -%}
{% include "attention/fragments_narrow.cuh" %}
{%- else -%}
{% include "attention/fragments.cuh" %}
{%- endif %}

  //
  // The steps that the queries of the tile need
  //

  constexpr int stages = size<2>(SmemK{});
  Steps const all(params, work);

{% include "attention/load.cuh" %}
{% include "attention/begin.cuh" %}

{% include "attention/loop_cp_async.cuh" %}
  cp_async_wait<0>();
  __syncthreads();  // all warps have read all stages, and nothing is on its way to them
  store(params, work, tOrO, softmax, shared);
}
