  Tensor mA = make_tensor(make_gmem_ptr(static_cast<Element const*>(params.a)), make_shape(params.m, params.k),
                          make_stride(params.lda, _1{}));                                      // (M,K)
  Tensor mW = make_tensor(make_gmem_ptr(static_cast<int32_t const*>(params.w)), make_shape(params.n / 64, params.k * 8),
                          make_stride(int64_t(params.w_row) * 64, _1{}));                      // (N/64,WORDS)
{%- for t in of_groups %}
{%- let x = t.name %}
  Tensor m[[ x ]] = make_tensor(make_gmem_ptr([[ t.pointer ]]), make_shape(groups, params.n),
                          [[ t.strides|fmt("{:<69}") ]]// (K/GROUP,N)
{%- endfor %}
  Tensor sA = make_tensor(make_smem_ptr(shared.a), SmemA{});                                   // (BM,BK,STAGES)
  Tensor sW = make_tensor(make_smem_ptr(shared.w), SmemW{});                                   // (BN/64,WORDS,STAGES)
  Tensor sS = make_tensor(make_smem_ptr(shared.s), SmemS{});                                   // (GROUPS,BN,STAGES)
{%- if d.recipe.zeros %}
  Tensor sZ = make_tensor(make_smem_ptr(shared.z), SmemZ{});                                   // (GROUPS,BN,STAGES)
{%- endif %}
  using TileW = decltype(take<0,2>(shape(SmemW{})));
  using TileS = decltype(take<0,2>(shape(SmemS{})));
  auto const [tile_m, tile_n] = crd_D;
  Tensor gA = local_tile(mA, TileA{}, make_coord(tile_m, _));                                  // (BM,BK,k)
  Tensor gW = local_tile(mW, TileW{}, make_coord(tile_n, _));                                  // (BN/64,WORDS,k)
  Tensor gS = local_tile(mS, TileS{}, make_coord(_, tile_n));                                  // (GROUPS,BN,k)
  Tensor cA = local_tile(make_identity_tensor(shape(mA)), TileA{}, make_coord(tile_m, _));     // (BM,BK,k) -> (m,k)
  Tensor cW = local_tile(make_identity_tensor(shape(mW)), TileW{}, make_coord(tile_n, _));     // (BN/64,WORDS,k)
  Tensor cS = local_tile(make_identity_tensor(shape(mS)), TileS{}, make_coord(_, tile_n));     // (GROUPS,BN,k)

  //
  // Partition: this thread's share of the copies and of the MMAs
  //

  CopyA const copy_a;
  CopyW const copy_w;
  CopyS const copy_s;
  Tensor tAgA = copy_a.get_slice(thread).partition_S(gA);                                      // (CPY,CPY_M,CPY_K,k)
  Tensor tAcA = copy_a.get_slice(thread).partition_S(cA);                                      // (CPY,CPY_M,CPY_K,k) -> (m,k)
  Tensor tAsA = partition_D(copy_a, thread, sA);                                               // (CPY,CPY_M,CPY_K,STAGES)
  Tensor tWgW = copy_w.get_slice(thread).partition_S(gW);                                      // (CPY,_1,CPY_K,k)
  Tensor tWcW = copy_w.get_slice(thread).partition_S(cW);                                      // (CPY,_1,CPY_K,k)
  Tensor tWsW = partition_D(copy_w, thread, sW);                                               // (CPY,_1,CPY_K,STAGES)
  Tensor tSgS = copy_s.get_slice(thread).partition_S(gS);                                      // (CPY,CPY_K,CPY_N,k)
  Tensor tScS = copy_s.get_slice(thread).partition_S(cS);                                      // (CPY,CPY_K,CPY_N,k)
  Tensor tSsS = partition_D(copy_s, thread, sS);                                               // (CPY,CPY_K,CPY_N,STAGES)
  bool const copies_a = size(copy_a) == size(Mma{}) || thread < size(copy_a);
  bool const copies_s = size(copy_s) == size(Mma{}) || thread < size(copy_s);
{%- if d.recipe.zeros %}
  Tensor gZ = local_tile(mZ, TileS{}, make_coord(_, tile_n));                                  // (GROUPS,BN,k)
  CopyZ const copy_z;
  Tensor tZgZ = copy_z.get_slice(thread).partition_S(gZ);                                      // (CPY,CPY_K,CPY_N,k)
  Tensor tZsZ = partition_D(copy_z, thread, sZ);                                               // (CPY,CPY_K,CPY_N,STAGES)
{%- endif %}
  Tensor tApA = make_tensor<bool>(make_shape(size<1>(tAsA)));                                  // (CPY_M): rows that A has
  CUTE_UNROLL
  for (int x = 0; x < size(tApA); ++x) {
    tApA(x) = get<0>(tAcA(_0{},x,_0{},0)) < params.m;
  }
  bool const is_in_w = get<0>(tWcW(_0{},_0{},_0{},0)) < size<0>(mW);

  // A k-tile has whole groups, or is one of several of a group.
  constexpr int tiles_of_group = cute::max(1, group / int(size<1>(TileA{})));
  Tensor tAnA = tAgA(_,_,_,first);                                                             // (CPY,CPY_M,CPY_K) of the next one
  Tensor tWnW = tWgW(_,_,_,first);                                                             // (CPY,_1,CPY_K) of the next one
  // Asynchronous copies of a k-tile, in order. Behind the last one nothing is read: stages become zeros. Inside of a branch nvcc
  // would compute all addresses anew.
  auto const load = [&](int k_tile, int stage) {
    int const left = k_tile < end ? params.k - k_tile * size<1>(TileA{}) : 0;                  // of K, from the k-tile on
    CUTE_UNROLL
    for (int k = 0; k < size<2>(tWsW); ++k) {
      bool const is_inside = is_in_w && get<1>(tWcW(_0{},_0{},k,0)) < left * 8;
      copy_all(copy_w.with(is_inside), tWnW(_,_0{},k), tWsW(_,_0{},k,stage));
    }
    if (copies_a) {
      CUTE_UNROLL
      for (int k = 0; k < size<2>(tAsA); ++k) {
        CUTE_UNROLL
        for (int x = 0; x < size<1>(tAsA); ++x) {
          bool const is_inside = tApA(x) && get<1>(tAcA(_0{},x,k,0)) < left;
          copy_all(copy_a.with(is_inside), tAnA(_,x,k), tAsA(_,x,k,stage));
        }
      }
    }
    if (copies_s && k_tile < end) {
      int const s_tile = k_tile / tiles_of_group;
      copy_inside(copy_s, tSgS(_,_,_,s_tile), tScS(_,_,_,s_tile), shape(mS), tSsS(_,_,_,stage));
{%- if d.recipe.zeros %}
      copy_inside(copy_z, tZgZ(_,_,_,s_tile), tScS(_,_,_,s_tile), shape(mZ), tZsZ(_,_,_,stage));
{%- endif %}
    }
    tAnA.data() = tAnA.data() + stride<2>(gA);
    tWnW.data() = tWnW.data() + stride<2>(gW);
    cp_async_fence();  // one group per k-tile, even an empty one: the waits count groups
  };
