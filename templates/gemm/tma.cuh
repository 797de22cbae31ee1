// Type of a TMA copy. The launch provides the tensor map. CuTe derives the box and its coordinates from the tile, its
// shared-memory layout, the mode of stride 1 and the number of sharers. One stage is sliced off before the swizzle is applied:
// CuTe cannot slice a swizzled layout whose stage is not a multiple of the swizzle's period.
template <class Op, class T, class Strides, class Smem, class Tile, class Sharers>
using Tma = decltype(make_tma_copy(Op{},
                                   make_tensor(make_gmem_ptr(static_cast<T*>(nullptr)),
                                               make_layout(repeat_like(Strides{}, 0), Strides{})),
                                   composition(Smem{}.layout_a(), Smem{}.offset(), Smem{}.layout_b()(_,_,_0{})),
                                   Tile{}, Sharers{}));
