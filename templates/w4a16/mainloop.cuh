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
{% include "w4a16/load.cuh" %}

  Mma const mma;
  auto const thr_mma = mma.get_slice(thread);
  decltype(thr_mma.partition_fragment_A(sA(_,_,_0{}))) tCrA;                                   // (MMA,MMA_M,MMA_K)
  Tensor tCrB = make_tensor<Element>(partition_shape_B(mma, Shape<Int<64 * rows_n>,_16>{}));   // (MMA,MMA_N,_1)
  LdsmA const ldsm_a;
  Tensor tXsA = partition_S(ldsm_a, thread, sA);                                               // (CPY,MMA_M,MMA_K,STAGES)
  Tensor tXrA = make_tensor(tCrA.data(), decltype(LdsmA::retile(tCrA.layout())){});            // (CPY,MMA_M,MMA_K)
  Tensor tXsW = partition_S(LoadW{}, thread, sW);                                              // (4,_1,MMA_K,STAGES): its own copy
  int const column = thread / 32 * 64 + thread % 32 / 8 * 16;  // the first of 16 neighbours, of which this thread has 8
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
        of = quantiser_of([[ self.at_group("(row,column,smem_pipe_read)") ]], odd);
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
