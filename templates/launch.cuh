
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

// Parameters, grids and workspace that follow from the arguments.
struct Launch {
  [[ params ]] params;
{% for (entry, _, _, _) in entries %}  dim3 [[ entry.function(plan.name()) ]]_grid;  // CTAs: 0 if this entry is not needed
{% if overlaps %}  bool [[ entry.function(plan.name()) ]]_overlaps;  // PDL: may begin before the previous kernel ends
{% endif %}{% endfor %}{% if !workspace.is_empty() %}  size_t workspace;  // bytes
{% endif %}};

{% if !maps.is_empty() %}{% include "tensor_map.cuh" %}

{% endif %}// Returns cudaErrorInvalidValue if an extent exceeds the kernel's index range.
inline cudaError_t
prepare(Arguments const& args, {% if !workspace.is_empty() %}void* workspace, {% endif %}Launch& launch)
{
{% for line in lines %}{% match line %}{% when Line::Let with (name, value) %}  int64_t const [[ name ]] = [[ value ]];
{% when Line::Require with (condition, because) %}  if (!([[ condition ]])) {
    return cudaErrorInvalidValue;  // [[ because ]]
  }
{% endmatch %}{% endfor %}  launch = Launch{};
{% for (name, value) in values %}  launch.params.[[ name ]] = [[ value ]];
{% endfor %}{% for (entry, when, blocks, begins) in entries %}  launch.[[ entry.function(plan.name()) ]]_grid = [[ when ]] ? dim3(unsigned([[ blocks[0] ]]), unsigned([[ blocks[1] ]]), unsigned([[ blocks[2] ]])) : dim3(0, 0, 0);
{% if overlaps %}  launch.[[ entry.function(plan.name()) ]]_overlaps = [[ begins ]];
{% endif %}{% endfor %}{% if !workspace.is_empty() %}  launch.workspace = [[ workspace ]];
  launch.params.workspace = workspace;
{% if !maps.is_empty() %}  if (launch.workspace > 0 && workspace == nullptr) {
    return cudaSuccess;  // without a workspace there is no address to encode a tensor map for
  }
  int64_t const begin = int64_t(reinterpret_cast<uintptr_t>(workspace));
{% endif %}{% endif %}{% for map in maps %}  if ([[ map.when ]]) {
    cuuint64_t const dims[] = { {%- for dim in map.dims %}{% if !loop.first %}, {% endif %}cuuint64_t([[ dim ]]){% endfor -%} };
    cuuint64_t const strides[] = { {%- for stride in map.strides %}{% if !loop.first %}, {% endif %}cuuint64_t([[ stride ]]){% endfor -%} };  // bytes
    cuuint32_t const box[] = { {%- for extent in map.extents %}{% if !loop.first %}, {% endif %}cuuint32_t([[ extent ]]){% endfor -%} };
    cudaError_t const error = encode_tensor_map(launch.params.[[ map.name ]], [[ map.ty ]], [[ map.dims.len() ]], [[ map.address ]],
                                                dims, strides, box, [[ map.swizzle ]]);
    if (error != cudaSuccess) {
      return error;
    }
  }
{% endfor %}  return cudaSuccess;
}

{% for (entry, _, _, _) in entries %}template <class Params>
__global__ void __launch_bounds__([[ entry.launch_bounds() ]]){% if entry.cluster > 1 %} __cluster_dims__([[ entry.cluster ]], 1, 1){% endif %}
[[ entry.function(plan.name()) ]]_entry(__grid_constant__ Params const params)
{
  [[ entry.function(plan.name()) ]](params);
}

{% endfor %}// Allows the kernel its dynamic shared memory, and launches it.
template <class Params>
cudaError_t
launch_entry(void (*entry)(Params const), dim3 grid, int threads, int smem_bytes, {% if overlaps %}bool overlaps, {% endif %}Params const& params, cudaStream_t stream)
{
  if (grid.x == 0) {
    return cudaSuccess;
  }
  void const* function = reinterpret_cast<void const*>(entry);
  if (smem_bytes > 0) {
    cudaError_t const error = cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, smem_bytes);
    if (error != cudaSuccess) {
      return error;
    }
  }
  void* arguments[] = {const_cast<Params*>(&params)};
{% if overlaps %}  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;  // PDL: may begin before the previous kernel ends
  attribute.val.programmaticStreamSerializationAllowed = overlaps;
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = smem_bytes;
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  return cudaLaunchKernelExC(&config, function, arguments);
{% else %}  return cudaLaunchKernel(function, grid, dim3(threads), arguments, smem_bytes, stream);
{% endif %}}

// Whether the kernel was compiled for the current device.
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
{% if !workspace.is_empty() %}
// Bytes of workspace that a launch needs; 0 if the launch is refused.
inline size_t
get_workspace_size(Arguments const& args)
{
  Launch launch;
  return prepare(args, nullptr, launch) == cudaSuccess ? launch.workspace : 0;
}
{% endif %}
// Launches on the current device. Returns cudaErrorNoKernelImageForDevice if the kernel does not support its architecture.
// Returns cudaErrorInvalidValue if an extent exceeds the kernel's index range{% if !workspace.is_empty() %}, or if the workspace is missing. Align it to 256 bytes{% endif %}.
inline cudaError_t
launch(Arguments const& args, {% if !workspace.is_empty() %}void* workspace, {% endif %}cudaStream_t stream = nullptr)
{
  cudaError_t error = check_device();
  Launch launch;
  if (error == cudaSuccess) {
    error = prepare(args, {% if !workspace.is_empty() %}workspace, {% endif %}launch);
  }
{% if !workspace.is_empty() %}  if (error == cudaSuccess && launch.workspace > 0 && workspace == nullptr) {
    error = cudaErrorInvalidValue;
  }
{% endif %}{% for (entry, _, _, _) in entries %}  if (error == cudaSuccess) {
    error = launch_entry([[ entry.function(plan.name()) ]]_entry<[[ params ]]>, launch.[[ entry.function(plan.name()) ]]_grid, [[ entry.threads ]], [[ entry.dynamic_smem.0 ]], {% if overlaps %}launch.[[ entry.function(plan.name()) ]]_overlaps, {% endif %}launch.params, stream);
  }
{% endfor %}  return error;
}

}  // namespace [[ plan.name() ]]
}  // namespace cutemplate

#endif
