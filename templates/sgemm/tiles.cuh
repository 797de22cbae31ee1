{% include "sgemm/tensors.cuh" %}
  //
  // Tiles of this CTA, in global and in shared memory
  //

  Tensor gA = local_tile(mA, TileA{}, make_coord([[ c.tile_m ]], _));                               // (BM,BK,k)
  Tensor gB = local_tile(mB, TileB{}, make_coord([[ c.tile_n ]], _));                               // (BN,BK,k)
  Tensor cA = local_tile(make_identity_tensor(shape(mA)), TileA{}, make_coord([[ c.tile_m ]], _));  // (BM,BK,k) -> (m,k)
  Tensor cB = local_tile(make_identity_tensor(shape(mB)), TileB{}, make_coord([[ c.tile_n ]], _));  // (BN,BK,k) -> (n,k)
  auto const crd_D = make_coord([[ c.tile_m ]], [[ c.tile_n ]]);
  auto const shape_MN = make_shape(params.m, params.n);
  Tensor cD = local_tile(make_identity_tensor(shape_MN), TileD{}, crd_D);                            // (BM,BN) -> (m,n)
{% for o in t.stores %}  Tensor g[[ o.name ]] = local_tile(m[[ o.name ]], TileD{}, crd_D);  // (BM,BN)
{% endfor -%}
