// Waits for the warps of a slice. Without other warps only for the lanes.
CUTE_DEVICE
void
sync_slice(int slice)
{
  if constexpr (size(Mma{}) == 32) {
    __syncwarp();
  } else {
    asm volatile("bar.sync %0, %1;" : : "r"(1 + slice), "n"(int(size(Mma{}))) : "memory");
  }
}

// Mainloop of a slice over the k-tiles [first, end) of a tile of D. STAGES - 1 k-tiles are in flight while one is multiplied.
template <class Crd, class TCrC>
CUTE_DEVICE
void
multiply(Params const& params, Crd const& crd_D, int first, int end, int slice, Stages& shared, TCrC& tCrC)
{
  constexpr int group = [[ d.recipe.group ]];
  constexpr int rows_n = [[ d.tilings[0].tile[1] ]] / 64;  // blocks of packed weights along N
  int const thread = threadIdx.x % size(Mma{});
  int const groups = params.k / group;
  Tensor mA = make_tensor(make_gmem_ptr(static_cast<Element const*>(params.a)), make_shape(params.m, params.k),
                          make_stride(params.lda, _1{}));                                      // (M,K)
  Tensor mW = make_tensor(make_gmem_ptr(static_cast<int32_t const*>(params.w)), make_shape(params.n / 64, params.k * 8),
                          make_stride(int64_t(params.w_row) * 64, _1{}));                      // (N/64,WORDS)
  Tensor mS = make_tensor(make_gmem_ptr(static_cast<Element const*>(params.scales)), make_shape(groups, params.n),
                          make_stride(params.ldscales, _1{}));                                 // (K/GROUP,N)
{%- if d.recipe.zeros %}
  Tensor mZ = make_tensor(make_gmem_ptr(static_cast<uint8_t const*>(params.zeros)), make_shape(groups, params.n),
                          make_stride(params.ldzeros, _1{}));                                  // (K/GROUP,N)
{%- endif %}
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
  // Asynchronous copies of a k-tile, in order. Behind the last one nothing is read: stages become zeros. No branch is around the copies,
  // or nvcc would compute their addresses in it anew.
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

  Mma const mma;
  auto const thr_mma = mma.get_slice(thread);
  decltype(thr_mma.partition_fragment_A(sA(_,_,_0{}))) tCrA;                                   // (MMA,MMA_M,MMA_K)
  Tensor tCrB = make_tensor<Element>(partition_shape_B(mma, Shape<Int<64 * rows_n>,_16>{}));   // (MMA,MMA_N,_1)
  LdsmA const ldsm_a;
  Tensor tXsA = partition_S(ldsm_a, thread, sA);                                               // (CPY,MMA_M,MMA_K,STAGES)
  Tensor tXrA = make_tensor(tCrA.data(), decltype(LdsmA::retile(tCrA.layout())){});            // (CPY,MMA_M,MMA_K)
  Tensor tXsW = partition_S(LoadW{}, thread, sW);                                              // (4,_1,MMA_K,STAGES): its own copy
  int const column = thread / 32 * 64 + thread % 32 / 8 * 16;  // the first of 16 neighbours, of which this thread has every other one
  bool const odd = thread / 4 % 2 != 0;

  clear(tCrC);
  constexpr int stages = size<2>(SmemA{});
  CUTE_UNROLL
  for (int stage = 0; stage < stages - 1; ++stage) {
    load(first + stage, stage);
  }
  int smem_pipe_read = 0;
  int smem_pipe_write = stages - 1;
  CUTE_NO_UNROLL
  for (int k_tile = first; k_tile < end; ++k_tile) {
    cp_async_wait<stages - 2>();
    sync_slice(slice);  // the k-tile has arrived, and all warps have read the stage that is written next
    Quantiser of;
    CUTE_UNROLL
    for (int k = 0; k < size<2>(tCrA); ++k) {
      if (k * 16 % group == 0) {
        int const row = k * 16 / group;
        of = quantiser_of(&sS(row,column,smem_pipe_read){% if d.recipe.zeros %}, &sZ(row,column,smem_pipe_read){% endif %}, odd);
      }
      uint4 const four = *reinterpret_cast<uint4 const*>(&tXsW(_0{},_0{},k,smem_pipe_read));
      uint32_t const words[4] = {four.x, four.y, four.z, four.w};
      copy_all(ldsm_a, tXsA(_,_,k,smem_pipe_read), tXrA(_,_,k));
      if (k == 0) {
        load(k_tile + stages - 1, smem_pipe_write);
      }
      dequantise(words, of, tCrB);
      gemm(mma, tCrA(_,_,k), tCrB(_,_,_0{}), tCrC);
    }
    smem_pipe_write = smem_pipe_read;
    smem_pipe_read = smem_pipe_read + 1 == stages ? 0 : smem_pipe_read + 1;
  }
  cp_async_wait<0>();  // the stages' memory is used for sums
}
