  if (is_cut) {
    // Partial sums, for `reduce`
{% for t in c.sums %}  {% include "tensor.cuh" %};  // [[ t.modes ]]
{% endfor %}    Tensor gW = mW(_,_,rest);  // (BM,BN)
    Tensor tCgW = zipped_divide(thr_mma.partition_C(gW)(_0{},_,_), Shape<_1,VecN>{});  // ((_1,VEC),(MMA_M,MMA_N/VEC))
    Tensor tCrW = zipped_divide(tCrC(_0{},_,_), Shape<_1,VecN>{});                     // ((_1,VEC),(MMA_M,MMA_N/VEC))
    CUTE_UNROLL
    for (int i = 0; i < size<1>(tCrW); ++i) {
      Tensor vector = make_fragment_like(tCrW(_,i));  // (VEC)
      copy_all(tCrW(_,i), vector);
      copy_all(Copy_Atom<UniversalCopy<VectorN>, float>{}, vector, tCgW(_,i));
    }
    return;
  }

