// Warps read the k-tiles of this CTA's tiles, which may lie anywhere, as stages become empty.
template <class SA, class SB>
CUTE_DEVICE
void
produce_gathered([[ c.plan.name() ]]_params const& params, Scheduler tiles, SA const& smem_A, SB const& smem_B, Barriers& barriers)
{
  int const thread = threadIdx.x - consumers;
  Tensor sA = as_position_independent_swizzle_tensor(smem_A);                                  // (BM,BK,STAGES)
  Tensor sB = as_position_independent_swizzle_tensor(smem_B);                                  // (BN,BK,STAGES)
  PipeState pipe;
  for (; tiles.has_tile(); tiles.advance()) {
    auto const crd_D = tiles.crd();
{% if c.batched() %}    int const l = get<2>(crd_D);
{% endif %}{% for t in c.factors() %}  {% include "tensor.cuh" %}{% if c.batched() %}(_,_,l){% endif %};  // [[ t.modes ]]
{% endfor %}{% include "gemm/tiles_of_factors.cuh" %}
{% if splits > 1 %}    int const first = tiles.first_k_tile(size<2>(gA));
    int const end = first + tiles.k_tiles(size<2>(gA));
{% endif %}    CUTE_NO_UNROLL
    for (int k_tile = {% if splits > 1 %}first; k_tile < end{% else %}0; k_tile < size<2>(gA){% endif %}; ++k_tile) {
      barriers.empty[pipe.stage].wait(pipe.phase ^ 1);
      auto const gather_part = [&](auto const& tiled_copy, auto const& g, auto const& c, auto const& bounds, auto const& s) {
        auto const thr_gather = tiled_copy.get_slice(anew(thread));
        if (thread < size(tiled_copy)) {
          gather(thr_gather.partition_S(g(_,_,k_tile)), thr_gather.partition_S(c(_,_,k_tile)), bounds, thr_gather.partition_D(s(_,_,pipe.stage)));
        }
      };
      gather_part(GatherA{}, gA, cA, shape(mA), sA);
      gather_part(GatherB{}, gB, cB, shape(mB), sB);
      cutlass::arch::fence_view_async_shared();  // WGMMA reads what threads have written
      barriers.full[pipe.stage].arrive();
      pipe.advance();
    }
  }
}
