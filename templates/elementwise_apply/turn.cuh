// What a thread moves at once.
template <class Element, int VEC>
using Vector = uint_bit_t<8 * sizeof(Element) * VEC>;

// Calls f with vec, one of VEC, VEC / 2, .., 1.
template <int VEC, class F>
CUTE_DEVICE
void
with_vector(int vec, F const& f)
{
  if constexpr (VEC == 1) {
    f(Int<1>{});
  } else if (vec == VEC) {
    f(Int<VEC>{});
  } else {
    with_vector<VEC / 2>(vec, f);
  }
}

// The values of a thread, ((VEC,VECS),RestM,RestN), by vector and by block: (VEC,VECS,(RestM,RestN)).
template <class Tensor>
CUTE_DEVICE
auto
by_vector(Tensor const& t)
{
  return make_tensor(t.data(), make_layout(layout<0,0>(t), layout<0,1>(t), make_layout(layout<1>(t), layout<2>(t))));
}

// Turns a block of registers: from vectors along M, (VEC,ROWS):(1,VEC), to rows along N, (VEC,ROWS):(ROWS,1). A word has four
// single bytes or two halves; prmt takes those of two words that become neighbours.
template <class Src, class Dst>
CUTE_DEVICE
void
turn(Src const& src, Dst&& dst)
{
  using Element = typename Src::value_type;
  constexpr int VEC = size<0>(typename Src::layout_type{}), ROWS = size<1>(typename Src::layout_type{});
  if constexpr (sizeof(Element) == 2 && VEC % 2 == 0 && ROWS % 2 == 0) {
    Tensor s = recast<uint32_t>(src);  // (VEC/2,ROWS)
    Tensor d = recast<uint32_t>(dst);  // (VEC,ROWS/2)
    CUTE_UNROLL
    for (int i = 0; i < VEC / 2; ++i) {
      CUTE_UNROLL
      for (int j = 0; j < ROWS / 2; ++j) {
        d(2 * i, j)     = __byte_perm(s(i, 2 * j), s(i, 2 * j + 1), 0x5410);
        d(2 * i + 1, j) = __byte_perm(s(i, 2 * j), s(i, 2 * j + 1), 0x7632);
      }
    }
  } else if constexpr (sizeof(Element) == 1 && VEC % 4 == 0 && ROWS % 4 == 0) {
    Tensor s = recast<uint32_t>(src);  // (VEC/4,ROWS)
    Tensor d = recast<uint32_t>(dst);  // (VEC,ROWS/4)
    CUTE_UNROLL
    for (int i = 0; i < VEC / 4; ++i) {
      CUTE_UNROLL
      for (int j = 0; j < ROWS / 4; ++j) {
        // Two rows by turns: elements 0 and 1, then 2 and 3.
        uint32_t const a01 = __byte_perm(s(i, 4 * j), s(i, 4 * j + 1), 0x5140);
        uint32_t const a23 = __byte_perm(s(i, 4 * j), s(i, 4 * j + 1), 0x7362);
        uint32_t const b01 = __byte_perm(s(i, 4 * j + 2), s(i, 4 * j + 3), 0x5140);
        uint32_t const b23 = __byte_perm(s(i, 4 * j + 2), s(i, 4 * j + 3), 0x7362);
        d(4 * i, j)     = __byte_perm(a01, b01, 0x5410);
        d(4 * i + 1, j) = __byte_perm(a01, b01, 0x7632);
        d(4 * i + 2, j) = __byte_perm(a23, b23, 0x5410);
        d(4 * i + 3, j) = __byte_perm(a23, b23, 0x7632);
      }
    }
  } else {
    copy_all(src, dst);
  }
}

// Brings a tile in. A thread takes one block after the other: it loads vectors of VEC elements along M, turns the block in its
// registers, and stores rows along N.
template <class Thr, class Load, class Store, int VEC, class Global, class Coord, class Shared, class Inside>
CUTE_DEVICE
void
bring_in(Global const& gT, Coord const& gI, Shared&& sT, Inside const& inside)
{
  using Element = typename Global::value_type;
  using LoadAtom = Copy_Atom<UniversalCopy<Vector<Element, VEC>>, Element>;
  using StoreAtom = Copy_Atom<UniversalCopy<Vector<Element, size<1>(Store{})>>, Element>;
  auto thr_load = make_tiled_copy(LoadAtom{}, Thr{}, Load{}).get_slice(threadIdx.x);
  auto thr_store = make_tiled_copy(StoreAtom{}, Thr{}, Store{}).get_slice(threadIdx.x);
  Tensor tTgT = by_vector(thr_load.partition_S(gT));   // (VEC,VECS,BLOCKS)
  Tensor tTcT = by_vector(thr_load.partition_S(gI));   // (VEC,VECS,BLOCKS) -> (m,n)
  Tensor tTsT = by_vector(thr_store.partition_D(sT));  // (ROWS,VEC,BLOCKS)

  CUTE_NO_UNROLL
  for (int b = 0; b < size<2>(tTcT); ++b) {
    Tensor rLoad = make_tensor<Element>(Load{});    // (VEC,ROWS), vectors along M first
    Tensor rStore = make_tensor<Element>(Store{});  // (VEC,ROWS), rows along N first
    Tensor tTrT = make_tensor(rLoad.data(), make_layout(take<0,2>(shape(tTcT))));   // (VEC,VECS)
    Tensor tTrS = make_tensor(rStore.data(), make_layout(take<0,2>(shape(tTsT))));  // (ROWS,VEC)
    clear(rLoad);
    CUTE_UNROLL
    for (int v = 0; v < size<1>(tTcT); ++v) {
      if (inside(tTcT(_0{}, v, b))) {
        copy_all(LoadAtom{}, tTgT(_,v,b), tTrT(_,v));
      }
    }
    turn(rLoad, rStore);
    CUTE_UNROLL
    for (int v = 0; v < size<1>(tTsT); ++v) {
      copy_all(StoreAtom{}, tTrS(_,v), tTsT(_,v,b));
    }
  }
}
