// SGEMM with a tile of 64 x 64 x 8 for a block of 64 threads and 8 x 8 elements for a thread, in plain CUDA C++: what
// `cutemplate emit sgemm --set variant=block_2d` emits as CuTe, with the same accesses in the same order, written by hand.
//
// A is (M,K), B is (K,N), C and D are (M,N), all row-major without gaps; M and N are multiples of 64, K of 8.
// Launch: 64 threads, (N/64, M/64) blocks.

constexpr int BM = 64, BN = 64, BK = 8;
constexpr int TM = 8, TN = 8;
constexpr int THREADS = (BM / TM) * (BN / TN);

extern "C" __global__ void __launch_bounds__(THREADS)
sgemm_block_2d_by_hand(int n, int k, float alpha, float const* a, float const* b, float beta, float const* c, float* d)
{
  __shared__ float tile_a[BM][BK];
  __shared__ float tile_b[BK][BN];

  int const thread = int(threadIdx.x);
  int const first_row = int(blockIdx.y) * BM;
  int const first_column = int(blockIdx.x) * BN;

  // Copies: eight threads along a row of A, all of them along a row of B.
  int const copy_row = thread / BK, copy_column = thread % BK;
  float const* from_a = a + size_t(first_row + copy_row) * k + copy_column;
  float const* from_b = b + first_column + thread;

  // Products: the 8 x 8 elements that begin here, in the tile.
  int const row = thread / (BN / TN) * TM;
  int const column = thread % (BN / TN) * TN;
  float sum[TM][TN] = {};

  for (int tile = 0; tile < k; tile += BK) {
#pragma unroll
    for (int i = 0; i < BM; i += THREADS / BK) {
      tile_a[copy_row + i][copy_column] = from_a[size_t(i) * k];
    }
#pragma unroll
    for (int i = 0; i < BK; ++i) {
      tile_b[i][thread] = from_b[size_t(i) * n];
    }
    from_a += BK;
    from_b += size_t(BK) * n;
    __syncthreads();

#pragma unroll
    for (int p = 0; p < BK; ++p) {
      float column_a[TM], row_b[TN];
#pragma unroll
      for (int i = 0; i < TM; ++i) {
        column_a[i] = tile_a[row + i][p];
      }
#pragma unroll
      for (int j = 0; j < TN; ++j) {
        row_b[j] = tile_b[p][column + j];
      }
#pragma unroll
      for (int i = 0; i < TM; ++i) {
#pragma unroll
        for (int j = 0; j < TN; ++j) {
          sum[i][j] += column_a[i] * row_b[j];
        }
      }
    }
    __syncthreads();
  }

#pragma unroll
  for (int i = 0; i < TM; ++i) {
    size_t const at = size_t(first_row + row + i) * n + first_column + column;
#pragma unroll
    for (int j = 0; j < TN; ++j) {
      d[at + j] = alpha * sum[i][j] + beta * c[at + j];
    }
  }
}
