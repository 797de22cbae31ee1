// Blocks of an entry; none if it is not needed.
struct Grid {
  unsigned x, y, z;
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
  return cudaLaunchKernel(function, dim3(grid.x, grid.y, grid.z), dim3(threads), arguments, smem_bytes, stream);
}
