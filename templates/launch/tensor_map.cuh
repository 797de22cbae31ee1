// Encodes a tensor map. The runtime looks up the driver's function, so no program has to link with the driver.
inline cudaError_t
encode_tensor_map(CUtensorMap& map, CUtensorMapDataType type, cuuint32_t rank, int64_t address, cuuint64_t const* dims,
                  cuuint64_t const* strides, cuuint32_t const* box, CUtensorMapSwizzle swizzle)
{
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found;
#if CUDART_VERSION >= 12050
  cudaError_t const error = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found);
#else
  cudaError_t const error = cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &function, cudaEnableDefault, &found);
#endif
  if (error != cudaSuccess || found != cudaDriverEntryPointSuccess) {
    return error != cudaSuccess ? error : cudaErrorSymbolNotFound;
  }
  // If the box's rows are whole L2 lines, the load also promotes the neighbouring box's lines to L2.
  bool lines = swizzle == CU_TENSOR_MAP_SWIZZLE_128B && address % 128 == 0;
  for (cuuint32_t mode = 0; mode + 1 < rank; ++mode) {
    lines = lines && strides[mode] % 128 == 0;
  }
  cuuint32_t const steps[] = {1, 1, 1, 1, 1};
  auto const encode = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function);
  CUresult const encoded = encode(&map, type, rank, reinterpret_cast<void*>(address), dims, strides, box, steps,
                                  CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
                                  lines ? CU_TENSOR_MAP_L2_PROMOTION_L2_256B : CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                                  CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return encoded == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidValue;
}
