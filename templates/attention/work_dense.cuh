// CTAs of a head are neighbours, and so are heads that share keys.
CUTE_DEVICE
Work
work_of(Params const& params)
{
  int const tiles = ceil_div(params.sq, size<0>(TileQ{}));
  auto const [tile, head, batch] = idx2crd(int(blockIdx.x), make_shape(tiles, params.hq, params.b));
  Place const keys{batch, head / (params.hq / params.hk)};
  return {{batch, head}, keys, keys, first_query(tile, tiles), params.sq, params.sk};
}
