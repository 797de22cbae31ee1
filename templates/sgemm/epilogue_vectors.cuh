  //
  // Epilogue: vectors along N where they are whole and aligned. A row's inputs are read before it is written: they may alias D
  //

{% let stores = c.epilogue() %}{% include "sgemm/vectors_d.cuh" %}
  Op const op{[[ c.op.scalars ]]};
  CUTE_UNROLL
  for (int m = 0; m < size<1,0>(tDrC); ++m) {
{% for t in c.reads() %}    auto const shape_[[ t.is.name ]] = make_shape(size<0>(tDrC), size<1,1>(tDrC));
    Tensor tDr[[ t.read_name() ]] = make_tensor<Element[[ t.is.name ]]>(shape_[[ t.is.name ]]);  // (VEC,MMA_N/VEC)
    clear(tDr[[ t.read_name() ]]);
{% endfor %}{% include "sgemm/vectors_n.cuh" %}
{% if !c.reads().is_empty() %}    CUTE_UNROLL
    for (int n = 0; n < size<1,1>(tDrC); ++n) {
{% for t in c.reads() %}{% let name = t.is.name %}{% let read = t.read_name() %}{% include "sgemm/read.cuh" %}
{% endfor %}    }
{% endif %}    CUTE_UNROLL
    for (int n = 0; n < size<1,1>(tDrC); ++n) {
      Tensor tDrD = make_tensor<float>(size<0>(tDrC));  // (VEC)
      CUTE_UNROLL
      for (int i = 0; i < size(tDrD); ++i) {
        tDrD(i) = op(tDrC(at(n))(i)[[ c.converted("tDr", "(i, n)") ]]);
      }
      if (whole(n)) {
        copy_all(Copy_Atom<UniversalCopy<VectorN>, float>{}, tDrD, tDgD(at(n)));
      } else {
        copy_all_if(inside(n), tDrD, tDgD(at(n)));
      }
    }
  }
