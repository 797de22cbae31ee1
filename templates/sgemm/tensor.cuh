  Tensor m[[ t.name ]] = make_tensor(make_gmem_ptr(static_cast<[[ t.pointee ]]*>(params.[[ t.param ]])), [[ t.shape ]],
                          [[ t.strides ]])
