  assert_ieee();

  int const tile_m = int(blockIdx.y);
  int const tile_n = int(blockIdx.x);
  auto [split, l] = idx2crd(int(blockIdx.z), make_shape(Int<[[ c.d.recipe.split_k ]]>{}, [[ c.batches() ]]));

