// What CuTe copies by a tensor map that the launch gives: the box and its coordinates follow from the tile, from its layout in
// shared memory, from which stride is 1, and from how many share the copy. The layout loses its stages before it is swizzled:
// CuTe does not slice a swizzled layout whose stage is no whole number of the swizzle's periods.
template <class Op, class T, class Strides, class Smem, class Tile, class Sharers>
using Tma = decltype(make_tma_copy(Op{},
                                   make_tensor(make_gmem_ptr(static_cast<T*>(nullptr)),
                                               make_layout(repeat_like(Strides{}, 0), Strides{})),
                                   composition(Smem{}.layout_a(), Smem{}.offset(), Smem{}.layout_b()(_,_,_0{})),
                                   Tile{}, Sharers{}));
