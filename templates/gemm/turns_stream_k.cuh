// This CTA's tile number `turn`.
CUTE_DEVICE
Scheduler
tile_of(Params const& params, int turn)
{
  Scheduler tiles(params, anew(blockIdx.x));
  tiles.advance(anew(turn));
  return tiles;
}

// Computes a tile, or the partial sums of a shared one.
CUTE_DEVICE
void
compute(Params const& params, Scheduler const& tiles, int turn, SharedStorage& shared)
{
  decltype(partition_fragment_C(Mma{}, TileD{})) tCrC;                                         // (MMA,MMA_M,MMA_N)
  int const first = tiles.first_k_tile();
  multiply(copied(params), tiles.crd(), first, first + tiles.k_tiles(), shared.stages, tCrC);
  Scheduler const again = tile_of(params, turn);
  if (again.is_shared()) {
    give_sums(params, again, tCrC);
  } else {
    store_tile(params, again.crd(), tCrC, shared);
  }
}
