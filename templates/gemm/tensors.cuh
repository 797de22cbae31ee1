  //
  // Tiles of this CTA: CTAs are numbered along M first
  //

  auto const crd_D = idx2crd(int(blockIdx.x), ceil_div(shape(mD), TileD{}));                   // (m,n)
  Tensor gA = local_tile(mA, TileA{}, make_coord(get<0>(crd_D), _));                           // (BM,BK,k)
  Tensor gB = local_tile(mB, TileB{}, make_coord(get<1>(crd_D), _));                           // (BN,BK,k)
  Tensor gD = local_tile(mD, TileD{}, crd_D);                                                  // (BM,BN)
  Tensor cD = local_tile(make_identity_tensor(shape(mD)), TileD{}, crd_D);                     // (BM,BN) -> (m,n)

  extern __shared__ __align__([[ c.align ]]) unsigned char smem[];
  auto& shared = *reinterpret_cast<SharedStorage*>(smem);
  Tensor sA = make_tensor(make_smem_ptr(shared.a), SmemA{});                                   // (BM,BK,STAGES)
  Tensor sB = make_tensor(make_smem_ptr(shared.b), SmemB{});                                   // (BN,BK,STAGES)
  int const k_tiles = size<2>(gA);
