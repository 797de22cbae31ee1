  assert_ieee();

  int const tile_m = int(blockIdx.y);
  int const tile_n = int(blockIdx.x);
{% if c.d.recipe.batched %}  int const l = int(blockIdx.z);
{% endif %}
