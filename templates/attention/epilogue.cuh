// Divides by the sums of the weights, and stores O in vectors of 16 bytes through shared memory, which all warps have read.
template <class TOrO, class Rows>
CUTE_DEVICE
void
store(Params const& params, Work const& work, TOrO& tOrO, Rows const& softmax, SharedStorage& shared)
{
  auto const thr_mma = Output{}.get_slice(threadIdx.x);
  Tensor cO = make_identity_tensor(TileO{});                                                   // (BM,DV) -> (query,element)
  Tensor rows_o = by_rows(tOrO);                                                               // (ROWS,COLUMNS)
  CUTE_UNROLL
  for (int row = 0; row < size<0>(rows_o); ++row) {
    float const sum = softmax.whole(row);
    float const reciprocal = __frcp_rn(sum);
    CUTE_UNROLL
    for (int n = 0; n < size<1>(rows_o); ++n) {
      rows_o(row,n) = sum == 0 ? 0 : __fmul_rn(rows_o(row,n), reciprocal);
    }
  }
{%- if c.lse %}
{% include "attention/logarithms.cuh" %}
{%- endif %}
  Tensor tOrE = rounded(tOrO);                                                                 // (MMA,MMA_M,MMA_N)
  Tensor sO = make_tensor(make_smem_ptr(shared.o), SmemO{})(_,_,_0{});                           // (BM,DV)
  Tensor tRsO = thr_mma.partition_C(sO);                                                       // (MMA,MMA_M,MMA_N)
  copy_all(AutoVectorizingCopy{}, tOrE, tRsO);
  __syncthreads();  // the tile is complete
  if (threadIdx.x >= size(CopyO{})) {
    return;
  }
  auto const ptr_O = static_cast<Element*>(params.o)
                   + (work.q.sequence * params.o_[[ c.apart ]] + work.q.head * params.o_head);
  Tensor mO = make_tensor(make_gmem_ptr(ptr_O), make_shape(work.len_q, Value{}), make_stride(params.o_row, _1{}));  // (SQ,DV)
  Tensor gO = local_tile(mO, TileO{}, make_coord(work.first / size<0>(TileO{}), _0{}));          // (BM,DV)
  Tensor tOsO = partition_S(CopyO{}, threadIdx.x, sO);                                         // (CPY,CPY_M,CPY_N)
  auto const thr_copy = CopyO{}.get_slice(threadIdx.x);
  Tensor tOgO = thr_copy.partition_D(gO);                                                      // (CPY,CPY_M,CPY_N)
  Tensor tOcO = thr_copy.partition_D(cO);                                                      // (CPY,CPY_M,CPY_N) -> (query,element)
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
