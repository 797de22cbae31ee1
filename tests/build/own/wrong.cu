// Functions that declarations are compared with.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

struct Scale {
  int rows;
  double factor;
  float bias;
};

extern "C" __global__ void __launch_bounds__(128)
scale(float const* x, float* y, int rows, int cols, float factor)
{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < rows * cols) y[i] = x[i] * factor;
}

__global__ void by_struct(float const* x, float* y, Scale p)
{
  if (threadIdx.x < p.rows) y[threadIdx.x] = x[threadIdx.x] * float(p.factor) + p.bias;
}

__global__ void wide(float const* x, float* y, long long n)
{
  long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i];
}

template <int N>
__global__ void vectors(float4 const* x, float4* y, int n)
{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) { float4 v = x[i]; v.x *= N; y[i] = v; }
}

// Each block turns its elements around.
__global__ void reversed(float const* x, float* y, int n)
{
  extern __shared__ float tile[];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  tile[threadIdx.x] = i < n ? x[i] : 0.0f;
  __syncthreads();
  if (i < n) y[i] = tile[blockDim.x - 1 - threadIdx.x];
}

__global__ void __cluster_dims__(2, 1, 1) clustered(float const* x, float* y, int n)
{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i];
}

// Vectors that the type of the pointer does not tell.
__global__ void casts(float const* x, float* y, int n)
{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (4 * i < n) reinterpret_cast<float4*>(y)[i] = reinterpret_cast<float4 const*>(x)[i];
}

// Adds to what is there.
__global__ void adds(float const* x, float* y, int n)
{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += x[i];
}

// Writes through a pointer that is not const.
__global__ void writes(float* x, float* y, int n)
{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) { y[i] = x[i]; x[i] = 0.0f; }
}

// One thread for each element, without a guard.
__global__ void unguarded(float const* x, float* y) { y[blockIdx.x * blockDim.x + threadIdx.x] = x[blockIdx.x * blockDim.x + threadIdx.x]; }

// As cuda.h has it.
struct alignas(64) CUtensorMap_st { unsigned long long opaque[16]; };
__global__ void mapped(const __grid_constant__ CUtensorMap_st x, float* y) { y[threadIdx.x] = float(x.opaque[0]); }

__global__ void wide_elements(long const* x, long* y, int n)
{
  if (y != nullptr && threadIdx.x < n) y[threadIdx.x] = x[threadIdx.x];
}

// Parameters of fewer than 32 bits, by themselves and in a struct.
__global__ void narrow(float const* x, float* y, unsigned char flag, __half factor, unsigned short code, __nv_bfloat16 bias, int n)
{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = flag == 200 && code == 60000 ? x[i] * float(factor) + float(bias) : -1.0f;
}

struct Narrow {
  bool flag;
  __half factor;
  int n;
  unsigned char last;
};

__global__ void by_narrow_struct(float const* x, float* y, Narrow p)
{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < p.n) y[i] = p.flag && p.last == 7 ? x[i] * float(p.factor) : -1.0f;
}

// A block of any threads up to 256, each of which has every blockDim.x-th element.
__global__ void __launch_bounds__(256) any_block(float const* x, float* y, int n)
{
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = x[i];
}

__global__ void __block_size__((128, 1, 1)) one_block(float const* x, float* y, int n)
{
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = x[i];
}

__global__ void each(float const* x, float* y, int n)
{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i];
}
