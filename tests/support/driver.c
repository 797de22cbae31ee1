// A stand-in for libcuda: device memory is host memory, a launch is a line in a log. What it answers is set by variables
// of the environment, so that every answer of a driver can be had without one.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int CUresult;
enum { SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, INVALID_CONTEXT = 201, NO_BINARY_FOR_GPU = 209, NOT_FOUND = 500 };

static int setting(char const* name, int otherwise) {
  char const* text = getenv(name);
  return text ? atoi(text) : otherwise;
}

#define LOG(...)                                             \
  do {                                                       \
    char const* path = getenv("STAND_IN_LOG");               \
    FILE* log = path ? fopen(path, "a") : NULL;              \
    if (log) { fprintf(log, __VA_ARGS__); fclose(log); }     \
  } while (0)

// Names of streams and events: numbers in the order of their creation.
static uintptr_t next_stream = 100, next_event = 200;
static void* current;

CUresult cuDriverGetVersion(int* version) { *version = setting("STAND_IN_VERSION", 13000); return SUCCESS; }
CUresult cuInit(unsigned flags) { (void)flags; return setting("STAND_IN_INIT", SUCCESS); }
CUresult cuDeviceGetCount(int* count) { *count = setting("STAND_IN_DEVICES", 1); return SUCCESS; }
CUresult cuDeviceGet(int* device, int ordinal) { *device = ordinal; return SUCCESS; }
CUresult cuDeviceGetName(char* name, int length, int device) {
  (void)device;
  snprintf(name, (size_t)length, "Stand-in");
  return SUCCESS;
}
CUresult cuDeviceGetPCIBusId(char* address, int length, int device) {
  (void)device;
  snprintf(address, (size_t)length, "0000:3b:00.0");
  return SUCCESS;
}
CUresult cuDeviceTotalMem_v2(size_t* bytes, int device) { (void)device; *bytes = (size_t)1 << 34; return SUCCESS; }
CUresult cuDeviceGetAttribute(int* value, int attribute, int device) {
  (void)device;
  switch (attribute) {
    case 16: *value = 132; break;                                              // MULTIPROCESSOR_COUNT
    case 38: *value = setting("STAND_IN_L2", 60 << 20); break;                  // L2_CACHE_SIZE
    case 75: *value = setting("STAND_IN_CAPABILITY", 90) / 10; break;          // COMPUTE_CAPABILITY_MAJOR
    case 76: *value = setting("STAND_IN_CAPABILITY", 90) % 10; break;          // COMPUTE_CAPABILITY_MINOR
    case 115: *value = 1; break;                                               // MEMORY_POOLS_SUPPORTED
    default: *value = 0;
  }
  return SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(void** context, int device) {
  *context = (void*)(uintptr_t)(1 + device);
  return setting("STAND_IN_CONTEXT", SUCCESS);
}
CUresult cuDevicePrimaryCtxRelease_v2(int device) { (void)device; return SUCCESS; }
CUresult cuDevicePrimaryCtxGetState(int device, unsigned* flags, int* active) {
  (void)device;
  *flags = 0;
  *active = setting("STAND_IN_ACTIVE", 1);
  return SUCCESS;
}
// A primary context is 1 + its device; of any other the last digit is.
CUresult cuCtxGetDevice_v2(int* device, void* context) {
  *device = (int)((uintptr_t)context % 10) - 1;
  return *device < 0 ? INVALID_CONTEXT : SUCCESS;
}
CUresult cuCtxDestroy_v2(void* context) { LOG("destroy context %zu\n", (uintptr_t)context); return SUCCESS; }
CUresult cuCtxGetCurrent(void** context) { *context = current; return SUCCESS; }
CUresult cuCtxSetCurrent(void* context) { current = context; return setting("STAND_IN_CURRENT", SUCCESS); }
CUresult cuCtxSynchronize(void) { LOG("synchronize all\n"); return SUCCESS; }
CUresult cuMemGetInfo_v2(size_t* available, size_t* total) { *available = *total = (size_t)1 << 28; return SUCCESS; }

CUresult cuGetErrorName(int error, char const** name) {
  static char text[32];
  snprintf(text, sizeof text, "STAND_IN_ERROR_%d", error);
  *name = text;
  return SUCCESS;
}
CUresult cuGetErrorString(int error, char const** text) { (void)error; *text = "as it was told to"; return SUCCESS; }

CUresult cuStreamCreate(void** stream, unsigned flags) {
  (void)flags;
  *stream = (void*)++next_stream;
  return SUCCESS;
}
CUresult cuStreamDestroy_v2(void* stream) { (void)stream; return SUCCESS; }
CUresult cuStreamIsCapturing(void* stream, int* status) {
  (void)stream;
  *status = setting("STAND_IN_CAPTURING", 0);
  return SUCCESS;
}
CUresult cuStreamSynchronize(void* stream) { LOG("synchronize %zu\n", (uintptr_t)stream); return SUCCESS; }
CUresult cuStreamWaitEvent(void* stream, void* event, unsigned flags) {
  (void)flags;
  LOG("wait stream %zu event %zu\n", (uintptr_t)stream, (uintptr_t)event);
  return SUCCESS;
}
CUresult cuEventCreate(void** event, unsigned flags) { (void)flags; *event = (void*)++next_event; return SUCCESS; }
CUresult cuEventDestroy_v2(void* event) { (void)event; return SUCCESS; }
CUresult cuEventSynchronize(void* event) { LOG("synchronize event %zu\n", (uintptr_t)event); return SUCCESS; }
// 50 us between any two events, and what libraries said that their launches took between them.
static double clock_ms, recorded[1 << 16];
void stand_in_took(double ms) { clock_ms += ms; }
static double* time_of(void* event) { return &recorded[(uintptr_t)event % (sizeof recorded / sizeof *recorded)]; }
CUresult cuEventElapsedTime_v2(float* ms, void* start, void* end) {
  *ms = (float)(0.05 + *time_of(end) - *time_of(start));
  return SUCCESS;
}
CUresult cuEventRecord(void* event, void* stream) {
  *time_of(event) = clock_ms;
  LOG("record event %zu stream %zu\n", (uintptr_t)event, (uintptr_t)stream);
  return setting("STAND_IN_RECORD", SUCCESS);
}

CUresult cuMemAllocAsync(uint64_t* pointer, size_t bytes, void* stream) {
  if (bytes > (size_t)1 << 28) return OUT_OF_MEMORY;
  void* memory = aligned_alloc(256, (bytes + 256) & ~(size_t)255);
  *pointer = (uint64_t)(uintptr_t)memory;
  LOG("allocate %zu stream %zu\n", bytes, (uintptr_t)stream);
  return memory ? SUCCESS : OUT_OF_MEMORY;
}
CUresult cuMemFreeAsync(uint64_t pointer, void* stream) {
  LOG("free stream %zu\n", (uintptr_t)stream);
  free((void*)(uintptr_t)pointer);
  return SUCCESS;
}
CUresult cuMemPoolCreate(void** pool, void const* props) {
  (void)props;
  *pool = (void*)5;
  LOG("create pool\n");
  return setting("STAND_IN_POOL", SUCCESS);
}
CUresult cuMemPoolSetAttribute(void* pool, int attribute, void* value) {
  (void)pool;
  LOG("set attribute %d of the pool to %llx\n", attribute, *(unsigned long long*)value);
  return SUCCESS;
}
CUresult cuMemPoolDestroy(void* pool) { (void)pool; LOG("destroy pool\n"); return SUCCESS; }
CUresult cuMemAllocFromPoolAsync(uint64_t* pointer, size_t bytes, void* pool, void* stream) {
  (void)pool;
  LOG("from the pool: ");
  return cuMemAllocAsync(pointer, bytes, stream);
}
static CUresult copy(uint64_t to, uint64_t from, size_t bytes, void* stream) {
  LOG("copy %zu stream %zu\n", bytes, (uintptr_t)stream);
  memcpy((void*)(uintptr_t)to, (void const*)(uintptr_t)from, bytes);
  return SUCCESS;
}
CUresult cuMemcpyHtoDAsync_v2(uint64_t to, void const* from, size_t bytes, void* stream) {
  return copy(to, (uintptr_t)from, bytes, stream);
}
CUresult cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t bytes, void* stream) {
  return copy((uintptr_t)to, from, bytes, stream);
}
CUresult cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void* stream) { return copy(to, from, bytes, stream); }
CUresult cuMemsetD8Async(uint64_t pointer, unsigned char value, size_t bytes, void* stream) {
  LOG("set %zu stream %zu\n", bytes, (uintptr_t)stream);
  memset((void*)(uintptr_t)pointer, value, bytes);
  return SUCCESS;
}

CUresult cuModuleLoadData(void** module, void const* image) {
  uint64_t payload;
  memcpy(&payload, (char const*)image + 8, sizeof payload);
  LOG("load %s fatbin of %llu bytes\n", (uintptr_t)image % 8 ? "misaligned" : "aligned", (unsigned long long)payload + 16);
  *module = (void*)7;
  return setting("STAND_IN_LOAD", SUCCESS);
}
CUresult cuModuleUnload(void* module) { (void)module; LOG("unload\n"); return SUCCESS; }
// The kernel that does nothing, and the first entry of a module; the others follow.
static uintptr_t const EMPTY = 9, FIRST = 16;
CUresult cuModuleGetFunction(void** function, void* module, char const* name) {
  (void)module;
  static uintptr_t next = FIRST;
  // The kernel that does nothing is in a module of its own.
  int const empty = strcmp(name, "empty") == 0;
  *function = (void*)(empty ? EMPTY : next++);
  if (empty) return SUCCESS;
  char const* known = getenv("STAND_IN_ENTRY");
  return !known || strcmp(name, known) == 0 ? SUCCESS : NOT_FOUND;
}
CUresult cuFuncGetAttribute(int* value, int attribute, void* function) {
  (void)function;
  switch (attribute) {
    case 0: *value = setting("STAND_IN_MAX_THREADS", 1024); break;  // MAX_THREADS_PER_BLOCK
    case 4: *value = 40; break;                                     // NUM_REGS
    case 6: *value = 90; break;                                     // BINARY_VERSION
    default: *value = 0;
  }
  return SUCCESS;
}
CUresult cuFuncSetAttribute(void* function, int attribute, int value) {
  (void)function;
  LOG("set attribute %d to %d\n", attribute, value);
  return SUCCESS;
}
// Bytes of a parameter: `STAND_IN_PARAM_SIZE` is one number for all, or one for each and the last for all behind.
static size_t param_size(size_t index) {
  char const* text = getenv("STAND_IN_PARAM_SIZE");
  for (char const* next = text; index > 0 && next; --index) {
    next = strchr(text, ',');
    text = next ? next + 1 : text;
  }
  return text ? (size_t)atoi(text) : 64;
}
CUresult cuFuncGetParamInfo(void* function, size_t index, size_t* offset, size_t* size) {
  (void)function;
  if (index >= (size_t)setting("STAND_IN_PARAMS", 1)) return INVALID_VALUE;
  *offset = 112;  // as a driver says of a struct with tensor maps
  *size = param_size(index);
  return SUCCESS;
}
// The parameters of `sgemm`, variant naive.
struct Product {
  float const *a, *b, *c;
  float* d;
  int64_t lda, ldb, ldc, ldd;
  int32_t m, n, k;
  float alpha, beta;
};
// D = alpha * A @ B + beta * C; one element too large where this entry is to be wrong, none at all where it is to be idle.
static void multiply(struct Product const* p, int entry) {
  if (entry == setting("STAND_IN_IDLE", -1)) return;
  for (int i = 0; i < p->m; ++i) {
    for (int j = 0; j < p->n; ++j) {
      float sum = 0;
      for (int l = 0; l < p->k; ++l) sum += p->a[i * p->lda + l] * p->b[l * p->ldb + j];
      float const c = p->beta != 0 ? p->c[i * p->ldc + j] : 0;
      p->d[i * p->ldd + j] = p->alpha * sum + p->beta * c;
    }
  }
  if (entry == setting("STAND_IN_WRONG", -1)) p->d[(p->m - 1) * p->ldd + p->n - 1] += 0.5f;
}
// The parameters of `gemm` for sm_80, D of f32.
struct Half {
  _Float16 const *a, *b;
  float* d;
  void* workspace;
  int32_t group;
  int64_t lda, ldb, ldd, from_lda, packed_a, from_ldb, packed_b;
  int32_t packs_a, packs_b, m, n, k;
};
// D = A @ B, B by columns; one element too large where this entry is to be wrong.
static void multiply_half(struct Half const* p, int entry) {
  for (int i = 0; i < p->m; ++i) {
    for (int j = 0; j < p->n; ++j) {
      float sum = 0;
      for (int l = 0; l < p->k; ++l) sum += (float)p->a[i * p->lda + l] * (float)p->b[j * p->ldb + l];
      p->d[i * p->ldd + j] = sum;
    }
  }
  if (entry == setting("STAND_IN_WRONG", -1)) p->d[(p->m - 1) * p->ldd + p->n - 1] += 0.5f;
}
CUresult cuLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                        unsigned smem, void* stream, void** params, void** extra) {
  (void)extra;
  if ((uintptr_t)function == EMPTY) {
    LOG("empty launch\n");
    return SUCCESS;
  }
  if ((uintptr_t)function > FIRST) LOG("entry %zu: ", (uintptr_t)function - FIRST);
  LOG("launch grid %u,%u,%u block %u,%u,%u smem %u stream %zu params", gx, gy, gz, bx, by, bz, smem, (uintptr_t)stream);
  unsigned char const* bytes = (unsigned char const*)params[0];
  for (size_t i = 0; i < param_size(0); ++i) LOG("%s%02x", i ? "" : " ", bytes[i]);
  LOG("\n");
  int const entry = (int)((uintptr_t)function - FIRST);
  if (setting("STAND_IN_PRODUCTS", 0)) multiply((struct Product const*)params[0], entry);
  if (setting("STAND_IN_HALF_PRODUCTS", 0)) multiply_half((struct Half const*)params[0], entry);
  return setting("STAND_IN_LAUNCH", SUCCESS);
}
// A map says nothing to a stand-in that runs nothing.
CUresult cuTensorMapEncodeTiled(void* map, int type, unsigned rank, void* address, uint64_t const* dims, uint64_t const* strides,
                                unsigned const* box, unsigned const* steps, int interleave, int swizzle, int promotion, int fill) {
  (void)type, (void)rank, (void)address, (void)dims, (void)strides, (void)box, (void)steps, (void)interleave, (void)swizzle, (void)fill;
  LOG("map promotion %d\n", promotion);
  memset(map, 0, 128);
  return SUCCESS;
}

// A launch with attributes: that of programmatic stream serialization is told, and any other refused.
struct Attribute { int id; char pad[4]; union { char bytes[64]; int allowed; } value; };
struct Config { unsigned grid[3], block[3], smem; void* stream; struct Attribute* attributes; unsigned count; };
CUresult cuLaunchKernelEx(struct Config const* c, void* function, void** params, void** extra) {
  for (unsigned i = 0; i < c->count; ++i) {
    if (c->attributes[i].id != 6) return INVALID_VALUE;
    LOG("%s", c->attributes[i].value.allowed ? "programmatic " : "");
  }
  return cuLaunchKernel(function, c->grid[0], c->grid[1], c->grid[2], c->block[0], c->block[1], c->block[2], c->smem, c->stream, params,
                        extra);
}
