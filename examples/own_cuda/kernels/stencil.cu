// A stencil of seven points in three dimensions, in plain CUDA C++. Points outside of the grid count as 0.

constexpr int TX = 32;  // threads of a block along x
constexpr int TY = 4;   // along y

extern "C" __global__ void __launch_bounds__(TX * TY)
stencil(float const* x, float* y, int nz, int ny, int nx, long long plane, int row, float centre, float side)
{
  // A tile of one plane, with a halo of one point.
  __shared__ float tile[TY + 2][TX + 2];

  auto point = [&](int k, int j, int i) {
    bool inside = 0 <= k && k < nz && 0 <= j && j < ny && 0 <= i && i < nx;
    return inside ? x[k * plane + j * (long long)row + i] : 0.0f;
  };

  int k = blockIdx.z, j0 = blockIdx.y * TY, i0 = blockIdx.x * TX;
  for (int t = threadIdx.y * TX + threadIdx.x; t < (TY + 2) * (TX + 2); t += TX * TY) {
    int dj = t / (TX + 2), di = t % (TX + 2);
    tile[dj][di] = point(k, j0 + dj - 1, i0 + di - 1);
  }
  __syncthreads();

  int j = j0 + threadIdx.y, i = i0 + threadIdx.x;
  if (j < ny && i < nx) {
    int dj = threadIdx.y + 1, di = threadIdx.x + 1;
    float sides = tile[dj][di - 1] + tile[dj][di + 1] + tile[dj - 1][di] + tile[dj + 1][di];
    sides += point(k - 1, j, i) + point(k + 1, j, i);
    y[k * plane + j * (long long)row + i] = centre * tile[dj][di] + side * sides;
  }
}
