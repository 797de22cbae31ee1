{% include "sgemm/cta_tile.cuh" %}
{% let tensors = c.operands.as_slice() %}{% include "sgemm/tensors.cuh" %}
  //
  // Tiles of this CTA, in global and in shared memory
  //

  Tensor gA = local_tile(mA, TileA{}, make_coord(tile_m, _));                               // (BM,BK,k)
  Tensor gB = local_tile(mB, TileB{}, make_coord(tile_n, _));                               // (BN,BK,k)
  Tensor cA = local_tile(make_identity_tensor(shape(mA)), TileA{}, make_coord(tile_m, _));  // (BM,BK,k) -> (m,k)
  Tensor cB = local_tile(make_identity_tensor(shape(mB)), TileB{}, make_coord(tile_n, _));  // (BN,BK,k) -> (n,k)
{% let stores = c.epilogue() %}{% include "sgemm/tiles_d.cuh" %}
{% for f in c.factors %}  alignas([[ f.tile.align.0 ]]) __shared__ float smem_[[ f.param ]][cosize_v<Smem[[ f.tile.name ]]>];
{% endfor %}  Tensor sA = make_tensor(make_smem_ptr(smem_a), SmemA{});  // (BM,BK)
  Tensor sB = make_tensor(make_smem_ptr(smem_b), SmemB{});  // (BN,BK)
