  assert_ieee();

{% if c.wave %}  //
  // The tile of this CTA: the first are whole, of the others the first parts along K follow, then their second parts, ..
  //

  int const rest = int(blockIdx.x) - params.whole;
  bool const is_cut = rest >= 0;
  int const part = is_cut ? rest / params.cut : 0;
  int const tile = is_cut ? params.whole + rest % params.cut : int(blockIdx.x);
  auto [tile_n, tile_m[[ c.comma_l ]]] = idx2crd(tile, [[ c.tiles_nm ]]);

{% endif %}  //
  // Tensors
  //

{% if c.split > 1 %}  auto [split, l] = idx2crd(int(blockIdx.z), make_shape([[ c.parts ]]{}, [[ c.batches ]]));
{% else if c.batched && !c.wave %}  int const l = int(blockIdx.z);
{% endif %}{% for t in c.tensors %}  Tensor m[[ t.name ]] = make_tensor(make_gmem_ptr(static_cast<[[ t.pointee ]]*>(params.[[ t.param ]])), [[ t.shape ]],
                          [[ t.strides ]])[[ t.slice ]];  // [[ t.modes ]]
{% endfor -%}
