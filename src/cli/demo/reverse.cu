// Reverses 256 numbers in shared memory, twice: as it is easily written, and as it is right.
extern "C" __global__ void reverse(float const* x, float* y)
{
  __shared__ float tile[256];
  int t = threadIdx.x;
  tile[t] = x[t];
  y[t] = tile[255 - t];
}

extern "C" __global__ void reverse_with_barrier(float const* x, float* y)
{
  __shared__ float tile[256];
  int t = threadIdx.x;
  tile[t] = x[t];
  __syncthreads();
  y[t] = tile[255 - t];
}
