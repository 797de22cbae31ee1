  //
  // Tiles of this CTA: CTAs are numbered along M first{% if c.batched() %}, batch by batch{% endif %}
  //

{% if c.batched() %}  auto const tiles = make_shape(ceil_div(params.m, size<0>(TileD{})), ceil_div(params.n, size<1>(TileD{})), params.l);
  auto const [tile_m, tile_n, l] = idx2crd(int(blockIdx.x), tiles);
{% else %}  auto const tiles = make_shape(ceil_div(params.m, size<0>(TileD{})), ceil_div(params.n, size<1>(TileD{})));
  auto const [tile_m, tile_n] = idx2crd(int(blockIdx.x), tiles);
{% endif %}  auto const crd_D = make_coord(tile_m, tile_n);
{% for t in c.operands %}{% include "tensor.cuh" %}{% if c.batched() %}(_,_,l){% endif %};  // [[ t.modes ]]
{% endfor %}  Tensor gA = local_tile(mA, TileA{}, make_coord(get<0>(crd_D), _));                         // (BM,BK,k)
  Tensor gB = local_tile(mB, TileB{}, make_coord(get<1>(crd_D), _));                         // (BN,BK,k)
  Tensor cA = local_tile(make_identity_tensor(shape(mA)), TileA{}, make_coord(get<0>(crd_D), _));  // (BM,BK,k) -> (m,k)
  Tensor cB = local_tile(make_identity_tensor(shape(mB)), TileB{}, make_coord(get<1>(crd_D), _));  // (BN,BK,k) -> (n,k)

  extern __shared__ __align__([[ c.align ]]) unsigned char smem[];
  auto& shared = *reinterpret_cast<SharedStorage*>(smem);
  Tensor sA = make_tensor(make_smem_ptr(shared.stages.a), SmemA{});                            // (BM,BK,STAGES)
  Tensor sB = make_tensor(make_smem_ptr(shared.stages.b), SmemB{});                            // (BN,BK,STAGES)
  int const k_tiles = size<2>(gA);
