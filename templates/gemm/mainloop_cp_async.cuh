// Mainloop of a tile of D over the k-tiles [first, end). Every warp copies and multiplies. STAGES - 1 k-tiles are in flight while
// one is multiplied. On return all warps have read all stages.
template <class Crd, class TCrC>
CUTE_DEVICE
void
multiply(Params const& params, Crd const& crd_D, int first, int end, Stages& shared, TCrC& tCrC)
{
{%- for t in c.factors() %}
{% include "gemm/matrix.cuh" %}
{%- endfor %}
  Tensor gA = local_tile(mA, TileA{}, make_coord(get<0>(crd_D), _));                         // (BM,BK,k)
  Tensor gB = local_tile(mB, TileB{}, make_coord(get<1>(crd_D), _));                         // (BN,BK,k)
  Tensor cA = local_tile(make_identity_tensor(shape(mA)), TileA{}, make_coord(get<0>(crd_D), _));  // (BM,BK,k) -> (m,k)
  Tensor cB = local_tile(make_identity_tensor(shape(mB)), TileB{}, make_coord(get<1>(crd_D), _));  // (BN,BK,k) -> (n,k)
  Tensor sA = make_tensor(make_smem_ptr(shared.a), SmemA{});                                   // (BM,BK,STAGES)
  Tensor sB = make_tensor(make_smem_ptr(shared.b), SmemB{});                                   // (BN,BK,STAGES)

  //
  // Partition: this thread's share of the copies and of the MMAs
  //

  CopyA const copy_a;
  auto const thr_copy_a = copy_a.get_slice(threadIdx.x);
  Tensor tAgA = thr_copy_a.partition_S(gA(_,_,first));                                         // (CPY,CPY_M,CPY_K) of the next one
  Tensor tAsA = partition_D(copy_a, threadIdx.x, sA);                                          // (CPY,CPY_M,CPY_K,STAGES)
  CopyB const copy_b;
  auto const thr_copy_b = copy_b.get_slice(threadIdx.x);
  Tensor tBgB = thr_copy_b.partition_S(gB(_,_,first));                                         // (CPY,CPY_N,CPY_K) of the next one
  Tensor tBsB = partition_D(copy_b, threadIdx.x, sB);                                          // (CPY,CPY_N,CPY_K,STAGES)

  Mma const mma;
  auto const thr_mma = mma.get_slice(threadIdx.x);
  decltype(thr_mma.partition_fragment_A(sA(_,_,_0{}))) tCrA;                                   // (MMA,MMA_M,MMA_K)
  decltype(thr_mma.partition_fragment_B(sB(_,_,_0{}))) tCrB;                                   // (MMA,MMA_N,MMA_K)
  LdsmA const ldsm_a;
  Tensor tXsA = partition_S(ldsm_a, threadIdx.x, sA);                                          // (CPY,MMA_M,MMA_K,STAGES)
  Tensor tXrA = make_tensor(tCrA.data(), decltype(LdsmA::retile(tCrA.layout())){});            // (CPY,MMA_M,MMA_K)
  LdsmB const ldsm_b;
  Tensor tXsB = partition_S(ldsm_b, threadIdx.x, sB);                                          // (CPY,MMA_N,MMA_K,STAGES)
  Tensor tXrB = make_tensor(tCrB.data(), decltype(LdsmB::retile(tCrB.layout())){});            // (CPY,MMA_N,MMA_K)

  //
  // Mainloop
  //

  constexpr int stages = size<2>(SmemA{});
  // Not every tile has a vector for each thread.
  bool const copies_a = size(copy_a) == size(mma) || threadIdx.x < size(copy_a);
  bool const copies_b = size(copy_b) == size(mma) || threadIdx.x < size(copy_b);
  // K-tiles before end_inside lie inside of both matrices and need no predicates.
  auto const whole_tiles = make_coord(anew([[ c.rows_d() ]]) / size<0>(TileA{}), anew(params.n) / size<0>(TileB{}));
  bool const is_inside = elem_less(take<0,2>(crd_D), whole_tiles);
  int const end_inside = is_inside ? cute::min(end, anew([[ c.k_inside() ]]) / size<1>(TileA{})) : 0;
  auto const load = [&](int k_tile, int stage) {
    if (k_tile < end_inside) {
      if (copies_a) {
        copy_all(copy_a.with(true), tAgA, tAsA(_,_,_,stage));
      }
      if (copies_b) {
        copy_all(copy_b.with(true), tBgB, tBsB(_,_,_,stage));
      }
    } else if (k_tile < end) {
      // Most k-tiles are inside, so coordinates are recomputed here instead of held in registers.
      if (copies_a) {
        Tensor tAcA = copy_a.get_slice(anew(threadIdx.x)).partition_S(cA(_,_,k_tile));           // (CPY,CPY_M,CPY_K) -> (m,k)
        copy_inside(copy_a, tAgA, tAcA, shape(mA), tAsA(_,_,_,stage));
      }
      if (copies_b) {
        Tensor tBcB = copy_b.get_slice(anew(threadIdx.x)).partition_S(cB(_,_,k_tile));           // (CPY,CPY_N,CPY_K) -> (n,k)
        copy_inside(copy_b, tBgB, tBcB, shape(mB), tBsB(_,_,_,stage));
      }
    }
    // Addresses advance by a stride: computing each from its k-tile's number takes ten instructions per operand.
    tAgA.data() = tAgA.data() + stride<2>(gA);
    tBgB.data() = tBgB.data() + stride<2>(gB);
    cp_async_fence();  // one group per k-tile, even an empty one: the waits count groups
  };

  clear(tCrC);
  CUTE_UNROLL
  for (int stage = 0; stage < stages - 1; ++stage) {
    load(first + stage, stage);
  }
  int smem_pipe_read = 0;
  int smem_pipe_write = stages - 1;
  constexpr int k_blocks = size<2>(tCrA);
  auto const fetch = [&](int k) {
    copy_all(ldsm_a, tXsA(_,_,k,smem_pipe_read), tXrA(_,_,k));
    copy_all(ldsm_b, tXsB(_,_,k,smem_pipe_read), tXrB(_,_,k));
  };
  auto const multiply = [&](int k) {
    round(tCrA(_,_,k));
    round(tCrB(_,_,k));
    gemm(mma, tCrA(_,_,k), tCrB(_,_,k), tCrC);
  };
  // With registers to spare, fragments are fetched one k-block ahead, also across the end of a k-tile.
  constexpr bool ahead = [[ r.fetches_ahead ]];
  if (first < end) {
    cp_async_wait<stages - 2>();
    __syncthreads();  // all threads' copies of the first k-tile have arrived
    if (ahead) {
      fetch(0);
    }
  }

  CUTE_NO_UNROLL
  for (int k_tile = first; k_tile < end; ++k_tile) {
    load(k_tile + stages - 1, smem_pipe_write);
    smem_pipe_write = smem_pipe_read;
    CUTE_UNROLL
    for (int k = ahead; k < k_blocks; ++k) {
      fetch(k);
      multiply(k - ahead);
    }
    smem_pipe_read = smem_pipe_read + 1 == stages ? 0 : smem_pipe_read + 1;
    cp_async_wait<stages - 2>();
    __syncthreads();  // all copies of the next k-tile have arrived, and all threads have read the stage that is written next
    if (ahead) {
      if (k_tile + 1 < end) {
        fetch(0);
      }
      multiply(k_blocks - 1);
    }
  }
}
