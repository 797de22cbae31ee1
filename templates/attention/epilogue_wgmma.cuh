// Divides by the sums of the weights, and stores O in vectors of 16 bytes through shared memory. In the memory of Q a warpgroup's
// rows are those that it alone has read.
template <class TOrO, class Rows>
CUTE_DEVICE
void
store(Params const& params, Work const& work, TOrO& tOrO, Rows& softmax, SharedStorage& shared)
{
{% include "attention/finish.cuh" %}
  Tensor tOrE = rounded(tOrO);                                                                 // (MMA,MMA_M,MMA_N)
  Tensor sO = make_tensor(make_smem_ptr(shared.o), SmemO{})(_,_,_0{});                           // (BM,DV)
  Tensor tRsO = group_modes<1,3>(partition_D(StageO{}, threadIdx.x, sO));                       // (CPY,COPIES)
  Tensor tORE = StageO{}.get_slice(threadIdx.x).retile_S(tOrE);                                // ((CPY,COPIES),MMA_M,MMA_N)
  Tensor tRrE = make_tensor(tORE.data(), get<0>(tORE.layout()));                               // (CPY,COPIES)
  auto const sync = [] { cutlass::arch::NamedBarrier::sync(128, rows_whole + threadIdx.x / 128); };
  if constexpr (!lends) {
    sync();  // the warpgroup has stored its rows of the tile before
  }
  copy_all(StageO{}, tRrE, tRsO);
  sync();  // the warpgroup's rows are complete
  Tensor gO = out(params, work);                                                               // (BM,DV)
  Tensor tOsO = partition_S(CopyO{}, threadIdx.x, sO);                                         // ((VECTOR,ROWS),CPY_M,CPY_N)
  auto const thr_copy = CopyO{}.get_slice(threadIdx.x);
  Tensor tOgO = thr_copy.partition_D(gO);                                                      // ((VECTOR,ROWS),CPY_M,CPY_N)
  Tensor tOcO = thr_copy.partition_D(cO);                                                      // (..) -> (query,element)
  auto const bounds = make_coord(work.len_q - work.first, Value{});
  CUTE_UNROLL
  for (int row = 0; row < size<0,1>(tOsO); ++row) {
    CUTE_UNROLL
    for (int n = 0; n < size<2>(tOsO); ++n) {
      if (elem_less(tOcO(make_coord(_0{},row),_0{},n), bounds)) {
        copy_all(CopyO{}, tOsO(make_coord(_,row),_0{},n), tOgO(make_coord(_,row),_0{},n));
      }
    }
  }
  if constexpr (lends) {
    cutlass::arch::fence_view_async_shared();  // TMA fills Q next
    __syncwarp();
  }
}
