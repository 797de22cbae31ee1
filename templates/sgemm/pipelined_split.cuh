{% include "sgemm/head.cuh" %}
{% include "sgemm/staged_types.cuh" %}

CUTE_DEVICE
void
kernel([[ c.plan.name() ]]_params const& params)
{
{% include "sgemm/cta_tile_split.cuh" %}
{% let tensors = c.matrices() %}{% include "sgemm/tensors.cuh" %}
{% for t in c.sums %}{% include "tensor.cuh" %}(_,_,split,l);  // (M,N)
{% endfor %}{% let stores = c.sums.as_slice() %}{% include "sgemm/staged_tiles.cuh" %}
  int const k_tiles_split = ceil_div(size<2>(gA), Int<[[ c.d.recipe.split_k ]]>{});
  int const k_tile_begin = cute::min(split * k_tiles_split, int(size<2>(gA)));
  int const k_tile_end = cute::min(k_tile_begin + k_tiles_split, int(size<2>(gA)));

{% include "sgemm/staged_mainloop.cuh" %}

{% include "sgemm/epilogue_sums.cuh" %}
}

{% include "sgemm/reduce.cuh" %}

}  // namespace [[ c.plan.name() ]]
}  // namespace cutemplate
