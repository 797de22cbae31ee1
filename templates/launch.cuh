
#if defined(__CUDACC__) && !defined(__CUDACC_RTC__) && !defined(CUTEMPLATE_NO_LAUNCH)

//
// Host side: launch(..), for C++ projects that compile this file with nvcc
//

namespace cutemplate {
namespace [[ plan.name() ]] {

// The arguments of a launch.
struct Arguments {
[[ arguments ]]
};

[[ grid ]]

// What follows from the arguments.
struct Launch {
  void* workspace;         // as given
  size_t workspace_bytes;  // that a launch needs
  [[ params ]] params;
{% for entry in entries %}  Grid [[ entry.name ]];
{% endfor %}};

{% if !maps.is_empty() %}{% include "launch/tensor_map.cuh" %}

{% endif %}// Returns cudaErrorInvalidValue if an extent exceeds the kernel's index range.
inline cudaError_t
prepare(Arguments const& args, Launch& launch)
{
{% for line in lines %}{% match line %}{% when Line::Let with (name, value) %}  int64_t const [[ name ]] = [[ value ]];
{% when Line::Require with (condition, because) %}  if (!([[ condition ]])) {
    return cudaErrorInvalidValue;  // [[ because ]]
  }
{% endmatch %}{% endfor %}{% for (name, value) in values %}  launch.params.[[ name ]] = [[ value ]];
{% endfor %}{% for entry in entries %}  if ([[ entry.when ]]) {
    launch.[[ entry.name ]] = {[[ entry.grid|join(", ") ]]};
  }
{% endfor %}  launch.workspace_bytes = [[ workspace ]];
{% if !maps.is_empty() %}{% include "launch/encode.cuh" %}{% endif %}  return cudaSuccess;
}

{% for entry in entries %}template <class Params>
__global__ void [[ entry.attributes|join(" ") ]]
[[ entry.name ]]_entry(__grid_constant__ Params const params)
{
  [[ entry.name ]](params);
}

{% endfor %}// Whether the kernel was compiled for the current device.
inline cudaError_t
check_device()
{
  int device = 0;
  int major = 0;
  int minor = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess) {
    error = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  }
  if (error == cudaSuccess) {
    error = cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
  }
  int const capability = 10 * major + minor;
  return error != cudaSuccess || [[ runs_on ]] ? error : cudaErrorNoKernelImageForDevice;
}

// Launches what was prepared: one entry after the other.
inline cudaError_t
launch_entries(Launch const& launch, cudaStream_t stream)
{
  cudaError_t error = cudaSuccess;
{% for e in entries %}{% let name = e.name %}  if (error == cudaSuccess) {
    error = launch_entry([[ name ]]_entry<[[ params ]]>, launch.[[ name ]], [[ e.threads ]], [[ e.smem ]], launch.params, stream);
  }
{% endfor %}  return error;
}

// Bytes of workspace that a launch needs; 0 also if the launch is refused.
inline size_t
get_workspace_size(Arguments const& args)
{
  Launch launch{};
  return prepare(args, launch) == cudaSuccess ? launch.workspace_bytes : 0;
}

[[ launch ]]

}  // namespace [[ plan.name() ]]
}  // namespace cutemplate

#endif
