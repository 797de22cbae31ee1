  assert_ieee();

{% if c.d.recipe.wave > 0 %}  //
  // The tile of this CTA: first the whole tiles, then the first shares of all tiles split along K, then their second shares, ..
  //

  int const rest = int(blockIdx.x) - params.whole;
  bool const is_cut = rest >= 0;
  int const part = is_cut ? rest / params.cut : 0;
  int const tile = is_cut ? params.whole + rest % params.cut : int(blockIdx.x);
  auto [tile_n, tile_m{% if c.d.recipe.batched %}, l{% endif %}] = idx2crd(tile, {% include "sgemm/tiles_nm.cuh" %});
{% else %}  int const tile_m = int(blockIdx.y);
  int const tile_n = int(blockIdx.x);
{% if c.d.recipe.split_k > 1 %}  auto [split, l] = idx2crd(int(blockIdx.z), make_shape(Int<[[ c.d.recipe.split_k ]]>{}, {% if c.d.recipe.batched %}params.l{% else %}_1{}{% endif %}));
{% else if c.d.recipe.batched %}  int const l = int(blockIdx.z);
{% endif %}{% endif %}
  //
  // Tensors
  //

{% for t in c.tensors() %}{% include "tensor.cuh" %}{% if t.is.name == "W" %}(_,_,split{% if c.d.recipe.batched %},l{% endif %}){% else if c.d.recipe.batched %}(_,_,l){% endif %};  // {% if t.is.name == "W" %}(M,N){% else %}[[ t.modes ]]{% endif %}
{% endfor -%}
