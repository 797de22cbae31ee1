// What the programs of this folder share: memory that both sides see, and a comparison.
#pragma once

#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

inline void check(cudaError_t error, char const* what)
{
  if (error != cudaSuccess) {
    std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
    std::exit(1);
  }
}

// So many elements, filled with small integers: their sums and products are exact.
template <class T>
T* managed(size_t count, int seed)
{
  T* data = nullptr;
  check(cudaMallocManaged(&data, count * sizeof(T)), "cudaMallocManaged");
  for (size_t i = 0; i < count; ++i) {
    data[i] = T(float(int((i * 7 + seed) % 13) - 6));
  }
  return data;
}

// Ends with 1 where an element is not what a loop computes.
template <class T, class Expected>
void compare(char const* name, T const* found, int rows, int columns, int64_t ld, Expected const& expected)
{
  check(cudaDeviceSynchronize(), name);
  for (int m = 0; m < rows; ++m) {
    for (int n = 0; n < columns; ++n) {
      if (float(found[m * ld + n]) != expected(m, n)) {
        std::fprintf(stderr, "%s(%d,%d) = %f, expected %f\n", name, m, n, float(found[m * ld + n]), float(expected(m, n)));
        std::exit(1);
      }
    }
  }
  std::printf("%s: %d x %d are right\n", name, rows, columns);
}
