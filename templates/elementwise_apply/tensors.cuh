  assert_ieee();

  //
  // Tensors
  //

  auto shape_MN = make_shape([[ c.shape_m ]], params.n);  // (M,N)[[ c.modes_m ]]
{% for t in c.tensors %}  Tensor m[[ t.name ]] = make_tensor(make_gmem_ptr(static_cast<[[ t.pointee ]]*>(params.[[ t.param ]])),
                          shape_MN, [[ t.strides ]]);  // (M,N)
{% endfor -%}
