// What goes with a layer of experts, in plain CUDA C++: rows by number, the experts of each token, and their weighted sum.
#include <cuda_fp16.h>

// The rows of a table that numbers name. A number without a row gives a row of NaN.
extern "C" __global__ void __launch_bounds__(128)
gather(int const* ids, __half const* table, __half* x, int numbered, int features, long long row)
{
  int id = ids[blockIdx.x];
  bool known = 0 <= id && id < numbered;
  for (int j = threadIdx.x; j < features; j += blockDim.x) {
    __half none = __ushort_as_half(0x7fff);
    x[blockIdx.x * (long long)features + j] = known ? table[id * row + j] : none;
  }
}

// The two largest logits of each token, the first of equal ones, and the softmax of both. NaN is never larger: such a token has the first
// two experts, with weights of NaN.
extern "C" __global__ void __launch_bounds__(128)
route(__half const* logits, int* expert, float* weight, int* slot, int* token, int* ends, int tokens, int experts)
{
  for (int t = threadIdx.x; t < tokens; t += blockDim.x) {
    __half const* row = logits + (long long)t * experts;
    float first = __half2float(row[0]), second = __half2float(row[1]);
    int best = 0, next = 1;
    if (second > first) {
      float swap = first;
      first = second, second = swap, best = 1, next = 0;
    }
    for (int e = 2; e < experts; ++e) {
      float logit = __half2float(row[e]);
      if (logit > first) {
        second = first, next = best, first = logit, best = e;
      } else if (logit > second) {
        second = logit, next = e;
      }
    }
    float less = expf(second - first);
    expert[2 * t] = best, expert[2 * t + 1] = next;
    weight[2 * t] = 1 / (1 + less), weight[2 * t + 1] = less / (1 + less);
  }
  __syncthreads();
  int e = threadIdx.x;
  if (e < experts) {
    int at = 0;
    for (int i = 0; i < 2 * tokens; ++i) {
      at += expert[i] < e;
    }
    for (int i = 0; i < 2 * tokens; ++i) {
      if (expert[i] == e) {
        slot[i] = at, token[at++] = i / 2;
      }
    }
    ends[e] = at;
  }
}

// A slot without a row of x gives a row of NaN.
extern "C" __global__ void __launch_bounds__(128)
combine(__half const* x, int const* slot, float const* weight, __half* y, int slots, int features)
{
  int t = blockIdx.x, s0 = slot[2 * t], s1 = slot[2 * t + 1];
  bool known = 0 <= s0 && s0 < slots && 0 <= s1 && s1 < slots;
  float w0 = weight[2 * t], w1 = weight[2 * t + 1];
  for (int j = threadIdx.x; j < features; j += blockDim.x) {
    __half sum = __ushort_as_half(0x7fff);
    if (known) {
      float a = __half2float(x[s0 * (long long)features + j]), b = __half2float(x[s1 * (long long)features + j]);
      sum = __float2half(w0 * a + w1 * b);
    }
    y[t * (long long)features + j] = sum;
  }
}
