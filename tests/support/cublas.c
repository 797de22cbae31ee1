// A stand-in for libcublas on a stand-in for libcuda, whose device memory is host memory.
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

// An element of a matrix of f16 as `at` finds it.
static float half_at(_Float16 const* matrix, int turned, int ld, int i, int j) {
  return (float)(turned ? matrix[(int64_t)i * ld + j] : matrix[(int64_t)j * ld + i]);
}

// A and B of f16 (CUDA_R_16F is 2), C of f16 or f32 (CUDA_R_32F is 0), sums and scalars of f32 (CUBLAS_COMPUTE_32F is 68).
int cublasGemmStridedBatchedEx(void* handle, int turn_a, int turn_b, int m, int n, int k, void const* alpha, void const* a,
                               int type_a, int lda, long long stride_a, void const* b, int type_b, int ldb,
                               long long stride_b, void const* beta, void* c, int type_c, int ldc, long long stride_c,
                               int batches, int compute, int algorithm) {
  (void)handle;
  (void)beta;
  (void)algorithm;
  if (type_a != 2 || type_b != 2 || (type_c != 0 && type_c != 2) || compute != 68) return 15;
  for (int l = 0; l < batches; ++l) {
    _Float16 const* const al = (_Float16 const*)a + l * stride_a;
    _Float16 const* const bl = (_Float16 const*)b + l * stride_b;
    for (int j = 0; j < n; ++j) {
      for (int i = 0; i < m; ++i) {
        float sum = 0;
        for (int p = k; p-- > 0;) sum += half_at(al, turn_a, lda, i, p) * half_at(bl, turn_b, ldb, p, j);
        int64_t const place = l * stride_c + (int64_t)j * ldc + i;
        sum *= *(float const*)alpha;
        if (type_c == 0) {
          ((float*)c)[place] = sum;
        } else {
          ((_Float16*)c)[place] = (_Float16)sum;
        }
      }
    }
  }
  return getenv("STAND_IN_CUBLAS") ? atoi(getenv("STAND_IN_CUBLAS")) : 0;
}
