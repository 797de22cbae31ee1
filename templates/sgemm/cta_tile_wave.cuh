  assert_ieee();

  //
  // The tile of this CTA: first the whole tiles, then the first shares of all tiles split along K, then their second shares, ..
  //

  int const rest = int(blockIdx.x) - params.whole;
  bool const is_cut = rest >= 0;
  int const part = is_cut ? rest / params.cut : 0;
  int const tile = is_cut ? params.whole + rest % params.cut : int(blockIdx.x);
  auto const tiles_NM = make_shape(ceil_div(params.n, size<1>(TileD{})), ceil_div(params.m, size<0>(TileD{})), [[ c.batches() ]]);
  auto [tile_n, tile_m, l] = idx2crd(tile, tiles_NM);

