// Reads vectors element by element, zeros where they lie outside of the matrix, and writes them to shared memory whole.
template <class Src, class Crd, class Bounds, class Dst>
CUTE_DEVICE
void
gather(Src const& src, Crd const& crd, Bounds const& bounds, Dst&& dst)
{
  CUTE_NO_UNROLL  // the producers' registers hold one vector
  for (int k = 0; k < size<2>(dst); ++k) {
    CUTE_NO_UNROLL
    for (int x = 0; x < size<1>(dst); ++x) {
      Tensor vector = make_tensor<Element>(make_shape(shape<0>(dst)));                                    // (CPY)
      CUTE_UNROLL
      for (int v = 0; v < size(vector); ++v) {
        vector(v) = elem_less(crd(v,x,k), bounds) ? Element(src(v,x,k)) : Element(0);
      }
      copy(Copy_Atom<UniversalCopy<uint128_t>, Element>{}, vector, dst(_,x,k));
    }
  }
}
