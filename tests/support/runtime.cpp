#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstring>
#include <map>
#include <string>

// A stand-in for the CUDA runtime, with which a program that nvcc compiled runs where there is no GPU: it knows the kernels by what is
// registered, and prints what it is asked for.
int capability = 90;
size_t params_bytes = 0;

// Made when the first kernel is registered, which is before any constructor of this file.
static std::map<void const*, std::string>& kernels()
{
  static std::map<void const*, std::string> all;
  return all;
}

extern "C" {
void** __cudaRegisterFatBinary(void*) { static void* handle; return &handle; }
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterFunction(void**, char const* host, char*, char const* name, int, uint3*, uint3*, dim3*, dim3*, int*)
{
  kernels()[host] = name;
}
void __cudaRegisterVar(void**, char*, char*, char const*, int, size_t, int, int) {}
char __cudaInitModule(void**) { return 0; }
cudaError_t __cudaPopCallConfiguration(dim3*, dim3*, size_t*, void*) { return cudaSuccess; }
cudaError_t __cudaGetKernel(cudaKernel_t*, void const*) { return cudaSuccess; }
cudaError_t __cudaLaunchKernel(cudaKernel_t, dim3, dim3, void**, size_t, cudaStream_t) { return cudaErrorUnknown; }

cudaError_t cudaGetDevice(int* device) { *device = 3; return cudaSuccess; }

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device)
{
  *value = attribute == cudaDevAttrComputeCapabilityMajor ? capability / 10 : capability % 10;
  return device == 3 ? cudaSuccess : cudaErrorInvalidDevice;
}

static void const* allowed = nullptr;
static int allowed_bytes = 0;

cudaError_t cudaFuncSetAttribute(void const* function, cudaFuncAttribute attribute, int value)
{
  allowed = attribute == cudaFuncAttributeMaxDynamicSharedMemorySize ? function : nullptr;
  allowed_bytes = value;
  return cudaSuccess;
}

// What it is told instead of what it would encode.
static CUresult encode(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address, cuuint64_t const* dims,
                       cuuint64_t const* strides, cuuint32_t const* box, cuuint32_t const* steps, CUtensorMapInterleave interleave,
                       CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2, CUtensorMapFloatOOBfill fill)
{
  struct Told {
    void* address;
    cuuint64_t dims[3], strides[2];
    cuuint32_t box[3], steps[3];
    int type, rank, interleave, swizzle, l2, fill;
  } told{};
  told.address = address;
  std::memcpy(told.dims, dims, 8 * rank);
  std::memcpy(told.strides, strides, 8 * (rank - 1));
  std::memcpy(told.box, box, 4 * rank);
  std::memcpy(told.steps, steps, 4 * rank);
  told.type = type;
  told.rank = int(rank);
  told.interleave = interleave;
  told.swizzle = swizzle;
  told.l2 = l2;
  told.fill = fill;
  static_assert(sizeof(told) <= sizeof(*map), "a map has room for it");
  std::memset(static_cast<void*>(map), 0, sizeof(*map));
  std::memcpy(static_cast<void*>(map), &told, sizeof(told));
  return CUDA_SUCCESS;
}

cudaError_t cudaGetDriverEntryPointByVersion(char const* name, void** function, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult* found)
{
  bool const known = !std::strcmp(name, "cuTensorMapEncodeTiled");
  *function = known ? reinterpret_cast<void*>(&encode) : nullptr;
  *found = known ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}

static cudaError_t launch(void const* function, dim3 grid, dim3 block, void** arguments, size_t smem, bool programmatic)
{
  // `reduce` of the mangled name of cutemplate::host0::reduce_entry<..>.
  std::string const name = kernels()[function];
  size_t const end = name.find("_entry");
  size_t const begin = name.find_last_of("0123456789", end) + 1;
  printf(" %s %u %u %u, %u %u %u, %zu%s%s,", name.substr(begin, end - begin).c_str(), grid.x, grid.y, grid.z, block.x, block.y, block.z,
         smem, smem > 0 && (allowed != function || allowed_bytes != int(smem)) ? " not allowed" : "",
         programmatic ? " programmatic" : "");
  for (size_t i = 0; i < params_bytes; ++i) {
    printf("%02x", static_cast<unsigned char*>(arguments[0])[i]);
  }
  return cudaSuccess;
}

cudaError_t cudaLaunchKernel(void const* function, dim3 grid, dim3 block, void** arguments, size_t smem, cudaStream_t)
{
  return launch(function, grid, block, arguments, smem, false);
}

cudaError_t cudaLaunchKernelExC(cudaLaunchConfig_t const* config, void const* function, void** arguments)
{
  bool programmatic = false;
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    if (config->attrs[i].id != cudaLaunchAttributeProgrammaticStreamSerialization) {
      return cudaErrorInvalidValue;
    }
    programmatic = config->attrs[i].val.programmaticStreamSerializationAllowed != 0;
  }
  return launch(function, config->gridDim, config->blockDim, arguments, config->dynamicSmemBytes, programmatic);
}
}
