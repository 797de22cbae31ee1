  auto const [[ t.is.param ]] = static_cast<[[ t.pointee() ]]*>(params.[[ t.is.param ]]);
  [[ t.declared() ]] m[[ t.is.name ]] = [[ t.part() ]](make_tensor(make_gmem_ptr([[ t.is.param ]]), [[ t.shape_of_tile() ]],
                                   [[ t.strides ]]), crd_D);  // [[ t.modes ]]
