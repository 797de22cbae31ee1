  if (smem_bytes > 0) {
    cudaError_t const error = cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, smem_bytes);
    if (error != cudaSuccess) {
      return error;
    }
  }