// A stand-in for libcublas, f32 only, on a stand-in for libcuda, whose device memory is host memory.
#include <stdint.h>
#include <stdlib.h>

int cublasCreate_v2(void** handle) { *handle = (void*)3; return 0; }
int cublasDestroy_v2(void* handle) { (void)handle; return 0; }
int cublasSetStream_v2(void* handle, void* stream) { (void)handle; (void)stream; return 0; }

// Element (i,j) of a matrix of columns, seen as it is or turned.
static float at(float const* matrix, int turned, int ld, int i, int j) {
  return turned ? matrix[(int64_t)i * ld + j] : matrix[(int64_t)j * ld + i];
}

int cublasSgemmStridedBatched(void* handle, int turn_a, int turn_b, int m, int n, int k, float const* alpha, float const* a,
                              int lda, long long stride_a, float const* b, int ldb, long long stride_b, float const* beta,
                              float* c, int ldc, long long stride_c, int batches) {
  (void)handle;
  (void)beta;
  for (int l = 0; l < batches; ++l) {
    for (int j = 0; j < n; ++j) {
      for (int i = 0; i < m; ++i) {
        float sum = 0;
        // Backwards, as nobody else.
        for (int p = k; p-- > 0;) {
          sum += at(a + l * stride_a, turn_a, lda, i, p) * at(b + l * stride_b, turn_b, ldb, p, j);
        }
        c[l * stride_c + (int64_t)j * ldc + i] = *alpha * sum;
      }
    }
  }
  return getenv("STAND_IN_CUBLAS") ? atoi(getenv("STAND_IN_CUBLAS")) : 0;
}
