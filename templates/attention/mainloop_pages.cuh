// The mainloop over the keys of a split, from the last to the first, whose rows lie in pages.
CUTE_DEVICE
void
attend(Params const& params, Work const& work, SharedStorage& shared)
{
  Tensor cQ = make_identity_tensor(TileQ{});                                                   // (BM,D) -> (row,element)
  Tensor cK = make_identity_tensor(TileK{});                                                   // (BN,D) -> (key,element)
  Tensor cV = make_identity_tensor(TileV{});                                                   // (DV,BN) -> (element,key)
  Tensor sQ = make_tensor(make_smem_ptr(shared.stages.q), SmemQ{});                              // (BM,D,1)
  Tensor sK = make_tensor(make_smem_ptr(shared.stages.k), SmemK{});                              // (BN,D,STAGES)
  Tensor sV = make_tensor(make_smem_ptr(shared.stages.v), SmemV{});                              // (DV,BN,STAGES)

  //
  // Partition: this thread's share of the copies and of the MMAs
  //

  CopyQ const copy_q;
  CopyK const copy_k;
  CopyV const copy_v;
  Tensor tQcQ = copy_q.get_slice(threadIdx.x).partition_S(cQ);                                 // (CPY,CPY_M,CPY_K)
  Tensor tQsQ = partition_D(copy_q, threadIdx.x, sQ)(_,_,_,_0{});                                // (CPY,CPY_M,CPY_K)
  Tensor tKcK = copy_k.get_slice(threadIdx.x).partition_S(cK);                                 // (CPY,CPY_N,CPY_K)
  Tensor tKsK = partition_D(copy_k, threadIdx.x, sK);                                          // (CPY,CPY_N,CPY_K,STAGES)
  Tensor tVcV = copy_v.get_slice(threadIdx.x).partition_S(cV);                                 // (CPY,CPY_N,CPY_K)
  Tensor tVsV = partition_D(copy_v, threadIdx.x, sV);                                          // (CPY,CPY_N,CPY_K,STAGES)

{% if c.recipe.is_narrow() -%}
{% include "attention/fragments_narrow.cuh" %}
{%- else -%}
{% include "attention/fragments.cuh" %}
{%- endif %}

  //
  // The steps of the split that the rows need
  //

  constexpr int stages = size<2>(SmemK{});
  Steps all(params, work);
  all.keep(work.split * [[ steps ]], (work.split + 1) * [[ steps ]]);

{% include "attention/load_pages.cuh" %}
{% include "attention/begin.cuh" %}

{% include "attention/loop_cp_async.cuh" %}
  cp_async_wait<0>();
  give(params, work, tOrO, softmax);
}
