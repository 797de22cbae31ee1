  //
  // Tensors
  //

{% if c.split > 1 %}  auto [split, l] = idx2crd(int(blockIdx.z), make_shape(_[[ c.split ]]{}, [[ c.batches ]]));
{% else if c.batched %}  int const l = int(blockIdx.z);
{% endif %}{% for t in c.tensors %}  Tensor m[[ t.name ]] = make_tensor(make_gmem_ptr(static_cast<[[ t.pointee ]]*>(params.[[ t.param ]])), [[ t.shape ]],
                          [[ t.strides ]])[[ t.slice ]];  // [[ t.modes ]]
{% endfor -%}
