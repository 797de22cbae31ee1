{% include "sgemm/head.cuh" %}
{% include "sgemm/staged_types.cuh" %}

CUTE_DEVICE
void
kernel([[ c.plan.name() ]]_params const& params)
{
{% include "sgemm/cta_tile.cuh" %}
{% let tensors = c.operands.as_slice() %}{% include "sgemm/tensors.cuh" %}
{% let stores = c.epilogue() %}{% include "sgemm/staged_tiles.cuh" %}
  int const k_tile_begin = 0;
  int const k_tile_end = size<2>(gA);

{% include "sgemm/staged_mainloop.cuh" %}

{% include "sgemm/epilogue_vectors.cuh" %}
}

}  // namespace [[ c.plan.name() ]]
}  // namespace cutemplate
