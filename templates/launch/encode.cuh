  if (launch.workspace_bytes > 0 && launch.workspace == nullptr) {
    return cudaSuccess;  // without a workspace there is no address to encode a tensor map for
  }
  int64_t const begin = int64_t(reinterpret_cast<uintptr_t>(launch.workspace));
{% for map in maps %}  if ([[ map.when ]]) {
    cuuint64_t const dims[] = {[[ map.dims|join(", ") ]]};
    cuuint64_t const strides[] = {[[ map.strides|join(", ") ]]};  // bytes
    cuuint32_t const box[] = {[[ map.extents|join(", ") ]]};
    cudaError_t const error = encode_tensor_map(launch.params.[[ map.name ]], [[ map.ty ]], [[ map.dims.len() ]], [[ map.address ]],
                                                dims, strides, box, [[ map.swizzle ]]);
    if (error != cudaSuccess) {
      return error;
    }
  }
{% endfor -%}
