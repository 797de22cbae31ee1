// Heads in groups whose keys and values stay in L2: all tiles of a group, of each number those of all its heads.
CUTE_DEVICE
int
works(Params const& params)
{
  return ceil_div(params.sq, size<0>(TileQ{})) * params.hq * params.b;
}

CUTE_DEVICE
Work
work_of(Params const& params, int number)
{
  int const tiles = ceil_div(params.sq, size<0>(TileQ{}));
  int const group = number / (tiles * params.group) * params.group;  // its first head, those of all batches one after the other
  int const among = number - group * tiles;
  int const heads = cute::min(params.group, params.hq * params.b - group);
  int const head  = (group + among % heads) % params.hq;
  int const batch = (group + among % heads) / params.hq;
  Place const keys{batch, head / (params.hq / params.hk)};
  return {{batch, head}, keys, keys, first_query(among / heads, tiles), params.sq, [[ c.len_k() ]], batch};
}
