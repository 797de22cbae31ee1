// The rows of a table that token numbers name, in plain CUDA C++. A number outside of the vocabulary gives a row of NaN.
#include <cuda_fp16.h>

extern "C" __global__ void __launch_bounds__(128)
embed(int const* ids, __half const* table, __half* x, int vocabulary, int features, long long row)
{
  int id = ids[blockIdx.x];
  bool known = 0 <= id && id < vocabulary;
  for (int j = threadIdx.x; j < features; j += blockDim.x) {
    __half none = __ushort_as_half(0x7fff);
    x[blockIdx.x * (long long)features + j] = known ? table[id * row + j] : none;
  }
}
