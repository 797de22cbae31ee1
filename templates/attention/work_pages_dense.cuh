// Rows of O.
CUTE_DEVICE
auto
outputs(Params const& params)
{
  return make_shape(params.hq, params.sq, params.b);
}

CUTE_DEVICE
Work
work_of(Params const& params, int index)
{
  int const tiles = ceil_div(params.sq * group_of(params), size<0>(TileQ{}));
  auto const [tile, head, split, batch] = idx2crd(index, make_shape(tiles, params.hk, params.splits, params.b));
  int const group = group_of(params);
  return {{batch, head * group}, {0, head}, tile * size<0>(TileQ{}), group, params.sq, keys_of(params, batch), batch, split};
}