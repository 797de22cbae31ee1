// Warps read the k-tiles of this CTA's tiles, which may lie anywhere, as stages become empty.
template <class SA, class SB>
CUTE_DEVICE
void
produce_gathered([[ c.plan.name() ]]_params const& params, Scheduler tiles, SA const& smem_A, SB const& smem_B, Barriers& barriers)
{
  int const thread = threadIdx.x - consumers;
  Tensor sA = as_position_independent_swizzle_tensor(smem_A);                                  // (BM,BK,STAGES)
  Tensor sB = as_position_independent_swizzle_tensor(smem_B);                                  // (BN,BK,STAGES)
  auto const thr_gather_a = GatherA{}.get_slice(thread);
  auto const thr_gather_b = GatherB{}.get_slice(thread);
  Tensor tAsA = thr_gather_a.partition_D(sA);                                                  // (CPY,CPY_M,CPY_K,STAGES)
  Tensor tBsB = thr_gather_b.partition_D(sB);                                                  // (CPY,CPY_N,CPY_K,STAGES)
  PipeState pipe;
  for (; tiles.has_tile(); tiles.advance()) {
    auto const crd_D = tiles.crd();
{% if c.batched() %}    int const l = get<2>(crd_D);
{% endif %}{% for t in c.factors() %}  {% include "tensor.cuh" %}{% if c.batched() %}(_,_,l){% endif %};  // [[ t.modes ]]
{% endfor %}{% include "gemm/tiles_of_factors.cuh" %}
    Tensor tAgA = thr_gather_a.partition_S(gA);                                                // (CPY,CPY_M,CPY_K,k)
    Tensor tAcA = thr_gather_a.partition_S(cA);                                                // (CPY,CPY_M,CPY_K,k) -> (m,k)
    Tensor tBgB = thr_gather_b.partition_S(gB);                                                // (CPY,CPY_N,CPY_K,k)
    Tensor tBcB = thr_gather_b.partition_S(cB);                                                // (CPY,CPY_N,CPY_K,k) -> (n,k)
    CUTE_NO_UNROLL
    for (int k_tile = 0; k_tile < size<2>(gA); ++k_tile) {
      barriers.empty[pipe.stage].wait(pipe.phase ^ 1);
      if (thread < size(GatherA{})) {
        gather(tAgA(_,_,_,k_tile), tAcA(_,_,_,k_tile), shape(mA), tAsA(_,_,_,pipe.stage));
      }
      if (thread < size(GatherB{})) {
        gather(tBgB(_,_,_,k_tile), tBcB(_,_,_,k_tile), shape(mB), tBsB(_,_,_,pipe.stage));
      }
      cutlass::arch::fence_view_async_shared();  // WGMMA reads what threads have written
      barriers.full[pipe.stage].arrive();
      pipe.advance();
    }
  }
}
