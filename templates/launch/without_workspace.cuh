// Launches on the current device. Returns cudaErrorNoKernelImageForDevice if the kernel does not support its architecture.
// Returns cudaErrorInvalidValue if an extent exceeds the kernel's index range.
inline cudaError_t
launch(Arguments const& args, cudaStream_t stream = nullptr)
{
  cudaError_t error = check_device();
  Launch launch{};
  if (error == cudaSuccess) {
    error = prepare(args, launch);
  }
  return error == cudaSuccess ? launch_entries(launch, stream) : error;
}
