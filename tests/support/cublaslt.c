// A stand-in for libcublasLt on a stand-in for libcuda, whose device memory is host memory. Its heuristics propose four algorithms:
// the first and the third compute, the second does not work here, and the state of the fourth is an error.
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, INVALID_VALUE = 7, EXECUTION_FAILED = 13, NOT_SUPPORTED = 15 };
enum { R_32F = 0, R_16F = 2, R_16BF = 14, COMPUTE_32F = 68 };

static int setting(char const* name, int otherwise) {
  char const* text = getenv(name);
  return text ? atoi(text) : otherwise;
}

typedef struct { int type; uint64_t rows, cols; int64_t ld, batch; int batches; } Layout;
typedef struct { int turn_a, turn_b, epilogue; void const* bias; int64_t bias_batch; } Desc;
typedef struct { uint64_t workspace; uint32_t alignment[4]; } Preference;
typedef struct { uint64_t data[8]; } Algo;
typedef struct { Algo algo; size_t workspace; int state; float waves; int reserved[4]; } Result;

size_t cublasLtGetVersion(void) { return 130002; }
int cublasLtCreate(void** handle) { *handle = (void*)4; return SUCCESS; }
int cublasLtDestroy(void* handle) { (void)handle; return SUCCESS; }

int cublasLtMatrixLayoutCreate(Layout** layout, int type, uint64_t rows, uint64_t cols, int64_t ld) {
  *layout = malloc(sizeof(Layout));
  **layout = (Layout){type, rows, cols, ld, 0, 1};
  return SUCCESS;
}
int cublasLtMatrixLayoutDestroy(Layout* layout) { free(layout); return SUCCESS; }
int cublasLtMatrixLayoutSetAttribute(Layout* layout, int attribute, void const* value, size_t bytes) {
  if (attribute == 5 && bytes == 4) memcpy(&layout->batches, value, 4);
  else if (attribute == 6 && bytes == 8) memcpy(&layout->batch, value, 8);
  else return INVALID_VALUE;
  return SUCCESS;
}

int cublasLtMatmulDescCreate(Desc** desc, int compute, int scale) {
  if (compute != COMPUTE_32F || scale != R_32F) return NOT_SUPPORTED;
  *desc = calloc(1, sizeof(Desc));
  (*desc)->epilogue = 1;
  return SUCCESS;
}
int cublasLtMatmulDescDestroy(Desc* desc) { free(desc); return SUCCESS; }
int cublasLtMatmulDescSetAttribute(Desc* desc, int attribute, void const* value, size_t bytes) {
  if (attribute == 3 && bytes == 4) memcpy(&desc->turn_a, value, 4);
  else if (attribute == 4 && bytes == 4) memcpy(&desc->turn_b, value, 4);
  else if (attribute == 7 && bytes == 4) memcpy(&desc->epilogue, value, 4);
  else if (attribute == 8 && bytes == 8) memcpy(&desc->bias, value, 8);
  else if (attribute == 10 && bytes == 8) memcpy(&desc->bias_batch, value, 8);
  else return INVALID_VALUE;
  return SUCCESS;
}

int cublasLtMatmulPreferenceCreate(Preference** preference) {
  *preference = calloc(1, sizeof(Preference));
  return SUCCESS;
}
int cublasLtMatmulPreferenceDestroy(Preference* preference) { free(preference); return SUCCESS; }
int cublasLtMatmulPreferenceSetAttribute(Preference* preference, int attribute, void const* value, size_t bytes) {
  if (attribute == 1 && bytes == 8) memcpy(&preference->workspace, value, 8);
  else if (attribute >= 5 && attribute <= 8 && bytes == 4) memcpy(&preference->alignment[attribute - 5], value, 4);
  else return INVALID_VALUE;
  return SUCCESS;
}

int cublasLtMatmulAlgoGetHeuristic(void* handle, Desc* desc, Layout* a, Layout* b, Layout* c, Layout* d, Preference* preference,
                                   int asked, Result* results, int* found) {
  (void)handle, (void)b, (void)c, (void)d;
  *found = 0;
  if (setting("STAND_IN_LT_PLAIN", 0) && desc->epilogue != 1) return NOT_SUPPORTED;
  if (a->type != R_16F && a->type != R_16BF) return NOT_SUPPORTED;
  for (int i = 0; i < 4; ++i) if (preference->alignment[i] < 2) return INVALID_VALUE;
  int const has = setting("STAND_IN_LT_ALGORITHMS", 4);
  for (int i = 0; i < has && i < asked; ++i) {
    results[i] = (Result){.algo = {{(uint64_t)i}}, .workspace = preference->workspace, .state = i == 3 ? NOT_SUPPORTED : SUCCESS};
    *found = i + 1;
  }
  return SUCCESS;
}

static float value(void const* matrix, int type, int64_t at) {
  if (type == R_32F) return ((float const*)matrix)[at];
  if (type == R_16F) return (float)((_Float16 const*)matrix)[at];
  uint32_t const bits = (uint32_t)((uint16_t const*)matrix)[at] << 16;
  float x;
  memcpy(&x, &bits, 4);
  return x;
}

static void store(void* matrix, int type, int64_t at, float x) {
  if (type == R_32F) { ((float*)matrix)[at] = x; return; }
  if (type == R_16F) { ((_Float16*)matrix)[at] = (_Float16)x; return; }
  uint32_t bits;
  memcpy(&bits, &x, 4);
  ((uint16_t*)matrix)[at] = (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// Milliseconds that a launch takes by the driver's events: the third algorithm's are fewer.
static void spend(uint64_t algorithm) {
  void* driver = dlopen("libcuda.so", RTLD_NOW | RTLD_NOLOAD);
  void (*took)(double) = driver ? (void (*)(double))dlsym(driver, "stand_in_took") : NULL;
  if (took) took(algorithm == 2 ? 0.1 : 0.3);
}

int cublasLtMatmul(void* handle, Desc* desc, float const* alpha, void const* a, Layout* al, void const* b, Layout* bl, float const* beta,
                   void const* c, Layout* cl, void* d, Layout* dl, Algo const* algo, void* workspace, size_t bytes, void* stream) {
  (void)handle, (void)stream;
  if (!workspace || bytes < (size_t)64 << 20) return INVALID_VALUE;
  if (algo->data[0] == 1) return NOT_SUPPORTED;
  int const k = (int)(desc->turn_a ? al->rows : al->cols);
  for (int l = 0; l < dl->batches; ++l) {
    for (uint64_t j = 0; j < dl->cols; ++j) {
      for (uint64_t i = 0; i < dl->rows; ++i) {
        float sum = 0;
        // Backwards, as nobody else.
        for (int64_t p = k; p-- > 0;) {
          int64_t const at_a = desc->turn_a ? (int64_t)i * al->ld + p : p * al->ld + (int64_t)i;
          int64_t const at_b = desc->turn_b ? p * bl->ld + (int64_t)j : (int64_t)j * bl->ld + p;
          sum += value(a, al->type, l * al->batch + at_a) * value(b, bl->type, l * bl->batch + at_b);
        }
        sum *= *alpha;
        int64_t const inside = (int64_t)j * dl->ld + (int64_t)i;
        if (*beta != 0) sum += *beta * value(c, cl->type, l * cl->batch + (int64_t)j * cl->ld + (int64_t)i);
        if (desc->epilogue & 4) sum += value(desc->bias, dl->type, l * desc->bias_batch + (int64_t)i);
        if (desc->epilogue & 2 && sum < 0) sum = 0;
        store(d, dl->type, l * dl->batch + inside, sum);
      }
    }
  }
  spend(algo->data[0]);
  return setting("STAND_IN_CUBLAS", SUCCESS);
}
