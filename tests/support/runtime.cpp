#include <cuda_runtime_api.h>

#include <cstdio>
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

cudaError_t cudaLaunchKernel(void const* function, dim3 grid, dim3 block, void** arguments, size_t smem, cudaStream_t)
{
  bool const is_reduce = kernels()[function].find("reduce_entry") != std::string::npos;
  printf(" %s %u %u %u, %u %u %u, %zu%s,", is_reduce ? "reduce" : "kernel", grid.x, grid.y, grid.z, block.x, block.y, block.z,
         smem, smem > 0 && (allowed != function || allowed_bytes != int(smem)) ? " not allowed" : "");
  for (size_t i = 0; i < params_bytes; ++i) {
    printf("%02x", static_cast<unsigned char*>(arguments[0])[i]);
  }
  return cudaSuccess;
}
}
