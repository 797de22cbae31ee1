// Blocks of an entry; none if it is not needed.
struct Grid {
  unsigned x, y, z;
  bool overlaps;  // PDL: may begin before the previous kernel ends
};

// Allows the kernel its dynamic shared memory, and launches it.
template <class Params>
cudaError_t
launch_entry(void (*entry)(Params const), Grid const& grid, int threads, int smem_bytes, Params const& params, cudaStream_t stream)
{
  if (grid.x == 0) {
    return cudaSuccess;
  }
  void const* function = reinterpret_cast<void const*>(entry);
{% include "launch/smem.cuh" %}
  void* arguments[] = {const_cast<Params*>(&params)};
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = grid.overlaps;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(grid.x, grid.y, grid.z);
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = smem_bytes;
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  return cudaLaunchKernelExC(&config, function, arguments);
}
