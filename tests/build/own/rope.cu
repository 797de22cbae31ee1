// Rotary embedding, and small functions beside it, as an author of CUDA C++ writes them.
#include <cuda_fp16.h>

// One thread for each pair of a row.
extern "C" __global__ void __launch_bounds__(128)
rope(__half* x, float const* __restrict__ cosines, float const* __restrict__ sines, int rows, int half, int ldx, float scale)
{
  int pair = blockIdx.x * blockDim.x + threadIdx.x;
  int row = pair / half, j = pair % half;
  if (row >= rows) return;
  __half* at = x + (long long)row * ldx;
  float a = __half2float(at[j]), b = __half2float(at[j + half]);
  float c = cosines[row * half + j] * scale, s = sines[row * half + j] * scale;
  at[j] = __float2half(a * c - b * s);
  at[j + half] = __float2half(a * s + b * c);
}
