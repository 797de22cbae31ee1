  Tensor m[[ t.is.name ]] = make_tensor(make_gmem_ptr(static_cast<[[ t.pointee() ]]*>(params.[[ t.is.param ]])), [[ t.shape ]],
                          [[ t.strides ]])
