// This CTA's tile number `turn`.
CUTE_DEVICE
Scheduler
tile_of(Params const& params, int turn)
{
  Scheduler tiles(params, blockIdx.x);
  tiles.advance(anew(turn));
  return tiles;
}

CUTE_DEVICE
void
compute(Params const& params, Scheduler const& tiles, int turn, SharedStorage& shared)
{
  decltype(partition_fragment_C(Mma{}, TileD{})) tCrC;                                         // (MMA,MMA_M,MMA_N)
  multiply(copied(params), tiles.crd(), 0, ceil_div([[ c.k_of_tile() ]], size<1>(TileA{})), shared.stages, tCrC);
  store_tile(params, tile_of(params, turn).crd(), tCrC, shared);
}
