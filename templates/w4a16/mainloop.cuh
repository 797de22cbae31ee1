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

  // A k-tile is `tiles_of_group` of a group along K, or has whole groups.
  constexpr int tiles_of_group = cute::max(1, group / int(size<1>(TileA{})));
  auto const fill = [&](auto const& copy, auto const& matrix, auto const& tile, auto const& crd, auto&& tensor) {
    if (size(copy) == size(Mma{}) || thread < size(copy)) {
      auto const thr_copy = copy.get_slice(thread);
      Tensor cT = local_tile(make_identity_tensor(shape(matrix)), tile, crd);                  // (ROWS,COLUMNS)
      copy_inside(copy, thr_copy.partition_S(local_tile(matrix, tile, crd)), thr_copy.partition_S(cT), shape(matrix),
                  partition_D(copy, thread, tensor));
    }
  };
  auto const load = [&](int k_tile, int stage) {
    if (k_tile < end) {
      fill(CopyW{}, mW, TileW{}, make_coord(get<1>(crd_D), k_tile), sW(_,_,stage));
      fill(CopyA{}, mA, TileA{}, make_coord(get<0>(crd_D), k_tile), sA(_,_,stage));
      fill(CopyS{}, mS, TileS{}, make_coord(k_tile / tiles_of_group, get<1>(crd_D)), sS(_,_,stage));
{%- if d.recipe.zeros %}
      fill(CopyZ{}, mZ, TileS{}, make_coord(k_tile / tiles_of_group, get<1>(crd_D)), sZ(_,_,stage));
{%- endif %}
    }
    cp_async_fence();  // one group per k-tile, even an empty one: the waits count groups
  };

  Mma const mma;
  auto const thr_mma = mma.get_slice(thread);
  decltype(thr_mma.partition_fragment_A(sA(_,_,_0{}))) tCrA;                                   // (MMA,MMA_M,MMA_K)
  Tensor tCrB = make_tensor<Element>(partition_shape_B(mma, Shape<Int<64 * rows_n>,_16>{}));   // (MMA,MMA_N,_1)
  LdsmA const ldsm_a;
  Tensor tXsA = partition_S(ldsm_a, thread, sA);                                               // (CPY,MMA_M,MMA_K,STAGES)
  Tensor tXrA = make_tensor(tCrA.data(), decltype(LdsmA::retile(tCrA.layout())){});            // (CPY,MMA_M,MMA_K)
  Tensor tWsW = partition_S(LoadW{}, thread, sW);                                              // (4,_1,K_STEPS,STAGES)
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
    load(k_tile + stages - 1, smem_pipe_write);
    Quantiser of;
    CUTE_UNROLL
    for (int k = 0; k < size<2>(tCrA); ++k) {
      if (k * 16 % group == 0) {
        int const row = k * 16 / group;
        of = quantiser_of(&sS(row,column,smem_pipe_read){% if d.recipe.zeros %}, &sZ(row,column,smem_pipe_read){% endif %}, odd);
      }
      uint4 const four = *reinterpret_cast<uint4 const*>(&tWsW(_0{},_0{},k,smem_pipe_read));
      uint32_t const words[4] = {four.x, four.y, four.z, four.w};
      copy_all(ldsm_a, tXsA(_,_,k,smem_pipe_read), tXrA(_,_,k));
      dequantise(words, of, tCrB);
      gemm(mma, tCrA(_,_,k), tCrB(_,_,_0{}), tCrC);
    }
    smem_pipe_write = smem_pipe_read;
    smem_pipe_read = smem_pipe_read + 1 == stages ? 0 : smem_pipe_read + 1;
  }
}
