  //
  // Epilogue: the sums of this part of K, in vectors along N where they are whole and aligned
  //

{% let stores = c.sums.as_slice() %}{% include "sgemm/vectors_d.cuh" %}
  CUTE_UNROLL
  for (int m = 0; m < size<1,0>(tDrC); ++m) {
{% include "sgemm/vectors_n.cuh" %}
    CUTE_UNROLL
    for (int n = 0; n < size<1,1>(tDrC); ++n) {
      Tensor tDrW = make_tensor<float>(size<0>(tDrC));  // (VEC)
      CUTE_UNROLL
      for (int i = 0; i < size(tDrW); ++i) {
        tDrW(i) = tDrC(at(n))(i);
      }
      if (whole(n)) {
        copy_all(Copy_Atom<UniversalCopy<VectorN>, float>{}, tDrW, tDgW(at(n)));
      } else {
        copy_all_if(inside(n), tDrW, tDgW(at(n)));
      }
    }
  }
