// Divides by the sums of the weights, and stores O in vectors of 16 bytes through shared memory, which all warps have read.
template <class TOrO, class Rows>
CUTE_DEVICE
void
store(Params const& params, Work const& work, TOrO& tOrO, Rows& softmax, SharedStorage& shared)
{
{% include "attention/finish.cuh" %}
  Tensor tOrE = rounded(tOrO);                                                                 // (MMA,MMA_M,MMA_N)
  Tensor sO = make_tensor(make_smem_ptr(shared.o), SmemO{})(_,_,_0{});                           // (BM,DV)
  Tensor tRsO = Output{}.get_slice(threadIdx.x).partition_C(sO);                                // (MMA,MMA_M,MMA_N)
  copy_all(AutoVectorizingCopy{}, tOrE, tRsO);
  __syncthreads();  // the tile is complete
  if (threadIdx.x >= size(CopyO{})) {
    return;
  }
  Tensor gO = out(params, work);                                                               // (BM,DV)
  Tensor tOsO = partition_S(CopyO{}, threadIdx.x, sO);                                         // (CPY,CPY_M,CPY_N)
  auto const thr_copy = CopyO{}.get_slice(threadIdx.x);
  Tensor tOgO = thr_copy.partition_D(gO);                                                      // (CPY,CPY_M,CPY_N)
  Tensor tOcO = thr_copy.partition_D(cO);                                                      // (CPY,CPY_M,CPY_N) -> (query,d)
  auto const bounds = make_coord(work.len_q - work.first, Value{});
  CUTE_UNROLL
  for (int m = 0; m < size<1>(tOsO); ++m) {
    CUTE_UNROLL
    for (int n = 0; n < size<2>(tOsO); ++n) {
      if (elem_less(tOcO(_0{},m,n), bounds)) {
        copy_all(CopyO{}, tOsO(_,m,n), tOgO(_,m,n));
      }
    }
  }
}
