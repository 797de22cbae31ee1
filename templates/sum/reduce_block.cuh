  //
  // Reduce: lanes in pairs, then warps in order
  //

{% include "sum/lanes.cuh" %}
  __shared__ float smem[size<0>(ThrShape{}) / 32];
  Tensor sSum = make_tensor(make_smem_ptr(smem), Shape<_[[ warps ]]>{});  // (WARPS)
  if (threadIdx.x % 32 == 0) {
    sSum(threadIdx.x / 32) = sum;
  }
  __syncthreads();
  sum = sSum(0);
  CUTE_UNROLL
  for (int warp = 1; warp < size(sSum); ++warp) {
    sum = __fadd_rn(sum, sSum(warp));
  }
