{% include "sgemm/tensors.cuh" %}
  //
  // Tiles of this CTA, in global and in shared memory
  //

  Tensor gA = local_tile(mA, TileA{}, make_coord(tile_m, _));                               // (BM,BK,k)
  Tensor gB = local_tile(mB, TileB{}, make_coord(tile_n, _));                               // (BN,BK,k)
  Tensor cA = local_tile(make_identity_tensor(shape(mA)), TileA{}, make_coord(tile_m, _));  // (BM,BK,k) -> (m,k)
  Tensor cB = local_tile(make_identity_tensor(shape(mB)), TileB{}, make_coord(tile_n, _));  // (BN,BK,k) -> (n,k)
{% include "sgemm/tiles_d.cuh" %}
