  auto const crd_D = make_coord(tile_m, tile_n);
  auto const shape_MN = make_shape(params.m, params.n);
  Tensor cD = local_tile(make_identity_tensor(shape_MN), TileD{}, crd_D);  // (BM,BN) -> (m,n)
{% for t in stores %}  Tensor g[[ t.is.name ]] = local_tile(m[[ t.is.name ]], TileD{}, crd_D);  // (BM,BN)
{% endfor -%}
