{% include "sgemm/head.cuh" %}
{% include "sgemm/staged_types.cuh" %}

CUTE_DEVICE
void
kernel([[ c.plan.name() ]]_params const& params)
{
{% include "sgemm/cta_tile_wave.cuh" %}
{% let tensors = c.operands.as_slice() %}{% include "sgemm/tensors.cuh" %}
{% let stores = c.epilogue() %}{% include "sgemm/staged_tiles.cuh" %}
  int const k_tile_begin = is_cut ? part * params.k_part : 0;
  int const k_tile_end = is_cut ? cute::min(k_tile_begin + params.k_part, int(size<2>(gA))) : int(size<2>(gA));

{% include "sgemm/staged_mainloop.cuh" %}

{% include "sgemm/store_sums.cuh" %}{% include "sgemm/epilogue_vectors.cuh" %}
}

{% include "sgemm/reduce_tiles.cuh" %}

}  // namespace [[ c.plan.name() ]]
}  // namespace cutemplate
