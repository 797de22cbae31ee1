  if (is_cut) {
    // The sums of this part, for `reduce`
{% for o in t.sums %}    Tensor g[[ o.name ]] = make_tensor(make_gmem_ptr(static_cast<[[ o.pointee ]]*>(params.[[ o.param ]])), [[ o.shape ]],
                            [[ o.strides ]])[[ o.slice ]];  // [[ o.modes ]]
{% endfor %}    Tensor tCgW = zipped_divide(thr_mma.partition_C(gW)(_0{},_,_), Shape<_1,Int<[[ t.vec_n ]]>>{});  // ((_1,VEC),(MMA_M,MMA_N/VEC))
    Tensor tCrW = zipped_divide(tCrC(_0{},_,_), Shape<_1,Int<[[ t.vec_n ]]>>{});                     // ((_1,VEC),(MMA_M,MMA_N/VEC))
    CUTE_UNROLL
    for (int i = 0; i < size<1>(tCrW); ++i) {
      Tensor vector = make_fragment_like(tCrW(_,i));  // (VEC)
      copy(tCrW(_,i), vector);
      copy(Copy_Atom<UniversalCopy<[[ t.vector_d ]]>, float>{}, vector, tCgW(_,i));
    }
    return;
  }

