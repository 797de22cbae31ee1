// At the edges of a matrix: zeros where what a copy moves lies outside.
{% for e in t.fills %}using Inside[[ e.matrix ]] = decltype(make_tiled_copy(Copy_Atom<[[ e.zeros ]], float>{},
                                        [[ e.thr ]]{},
                                        [[ e.val ]]{}));
{% endfor %}{% if t.vectors() %}{% for e in t.fills %}{% if e.vec > 1 %}using Single[[ e.matrix ]] = decltype(make_tiled_copy(Copy_Atom<SM80_CP_ASYNC_CACHEALWAYS_ZFILL<uint32_t>, float>{},
                                        [[ e.thr_single ]]{},
                                        Layout<Shape<_1,_1>,Stride<_1,_1>>{}));
{% endif %}{% endfor %}
// Element by element, where vectors would lie across an edge.
template <class Copy, class Src, class Crd, class Bounds, class Dst>
CUTE_DEVICE
void
copy_inside(Copy const& tiled_copy, Src const& src, Crd const& crd, Bounds const& shape, Dst&& dst)
{
  auto const thr_copy = tiled_copy.get_slice(threadIdx.x);
  Tensor tXgX = thr_copy.partition_S(src);  // (CPY,CPY_X,CPY_K)
  Tensor tXcX = thr_copy.partition_S(crd);  // (CPY,CPY_X,CPY_K) -> (x,k)
  Tensor tXsX = thr_copy.partition_D(dst);  // (CPY,CPY_X,CPY_K)
  CUTE_NO_UNROLL
  for (int k = 0; k < size<2>(tXsX); ++k) {
    CUTE_UNROLL
    for (int x = 0; x < size<1>(tXsX); ++x) {
      copy(tiled_copy.with(elem_less(tXcX(0,x,k), shape)), tXgX(_,x,k), tXsX(_,x,k));
    }
  }
}
{% endif %}
