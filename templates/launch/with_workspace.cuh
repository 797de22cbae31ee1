// Launches on the current device, with a workspace of get_workspace_size(args) bytes, aligned to 256.
// Returns cudaErrorNoKernelImageForDevice if the kernel does not support its architecture.
// Returns cudaErrorInvalidValue if an extent exceeds the kernel's index range, or if the workspace is missing.
inline cudaError_t
launch(Arguments const& args, void* workspace, cudaStream_t stream = nullptr)
{
  cudaError_t error = check_device();
  Launch launch{};
  launch.workspace = workspace;
  if (error == cudaSuccess) {
    error = prepare(args, launch);
  }
  if (error == cudaSuccess && launch.workspace_bytes > 0 && workspace == nullptr) {
    error = cudaErrorInvalidValue;
  }
  return error == cudaSuccess ? launch_entries(launch, stream) : error;
}
