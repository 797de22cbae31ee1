// Rows of an operand's TMA box. Where the operand has fewer rows, its box is cut: TMA is slower for rows outside of the tensor.
using BoxA = Int<size<0>(TileA{}) / size<1>(Cluster{})>;
using BoxB = Int<size<0>(TileB{}) / size<0>(Cluster{})>;
constexpr bool cuts_a = [[ c.part.cuts("A") ]];
constexpr bool cuts_b = [[ c.part.cuts("B") ]];

// Clears the rows of all stages that no box fills.
template <class S, class Box>
CUTE_DEVICE
void
clear_rows(S const& s, Box box, int rows)
{
  Tensor sV = recast<uint128_t>(s);                                                            // (ROWS,VEC,STAGES)
  int const vec = threadIdx.x % size<1>(sV);
  for (int row = rows + threadIdx.x / size<1>(sV); row < box; row += blockDim.x / size<1>(sV)) {
    CUTE_UNROLL
    for (int i = 0; i < size<0>(sV) / box; ++i) {
      CUTE_UNROLL
      for (int stage = 0; stage < size<2>(sV); ++stage) {
        sV(row + i * box,vec,stage) = uint128_t{};
      }
    }
  }
}

template <class SA, class SB>
CUTE_DEVICE
void
clear_outside(Params const& params, SA const& sA, SB const& sB)
{
  if ((cuts_a && params.m < BoxA{}) || (cuts_b && params.n < BoxB{})) {
    if constexpr (cuts_a) {
      clear_rows(sA, BoxA{}, params.m);
    }
    if constexpr (cuts_b) {
      clear_rows(sB, BoxB{}, params.n);
    }
    cutlass::arch::fence_view_async_shared();  // WGMMA reads them
    if constexpr (ctas > 1) {
      __syncthreads();  // the relaxed arrival at the cluster's barrier does not order stores
    }
  }
}
