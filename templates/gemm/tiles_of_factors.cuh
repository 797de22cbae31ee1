    Tensor gA = local_tile(mA, TileA{}, make_coord(get<0>(crd_D), _));                         // (BM,BK,k)
    Tensor gB = local_tile(mB, TileB{}, make_coord(get<1>(crd_D), _));                         // (BN,BK,k)
    Tensor cA = local_tile(make_identity_tensor(shape(mA)), TileA{}, make_coord(get<0>(crd_D), _));  // (BM,BK,k) -> (m,k)
    Tensor cB = local_tile(make_identity_tensor(shape(mB)), TileB{}, make_coord(get<1>(crd_D), _));  // (BN,BK,k) -> (n,k)
