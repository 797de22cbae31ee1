// Reads each element of a part that is inside once, in pairs of neighbours where they are aligned, and zeros for the others. Along a
// stride of 0 one stands for all, in registers too.
template <class T, bool Pairs, class Src, class Crd, class Inside>
CUTE_DEVICE
auto
read_part(bool is_read, bool in_pairs, Src const& src, Crd const& crd, Inside const& inside)
{
  auto const distinct = filter_zeros(src.stride(), src.shape());
  Tensor part = make_tensor<T>(make_layout(src.shape(), compact_major<LayoutLeft>(distinct)));  // (CPY,AT_ONCE)
  Tensor at = filter_zeros(crd, src.stride());                                                 // (CPY,AT_ONCE) without what is the same
  auto const copy_inside = [&](auto const& from, auto&& to) {
    CUTE_UNROLL
    for (int i = 0; i < size(to); ++i) {
      if (inside(at(i * (size(at) / size(to))))) {
        to(i) = from(i);
      }
    }
  };
  clear(part);
  if (is_read) {
    if (Pairs && in_pairs) {
      if constexpr (Pairs) {
        using Pair = uint_bit_t<2 * sizeof_bits_v<T>>;
        copy_inside(filter_zeros(recast<Pair const>(src)), filter_zeros(recast<Pair>(part)));
      }
    } else {
      copy_inside(filter_zeros(src), filter_zeros(part));
    }
  }
  return part;
}
