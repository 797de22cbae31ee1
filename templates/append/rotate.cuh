// Rotates what a thread has of a row: (CPY,CPY_N). Its second half lies half of the rotated elements behind the first. One product
// is rounded, the other one is not.
template <class Src, class Dst, class Keep, class Crd>
CUTE_DEVICE
void
rotate(Params const& params, int position, Src const& src, Dst&& dst, Keep const& keep, Crd const& element)
{
  constexpr bool interleaved = [[ interleaved ]];  // neighbours are rotated together
  int64_t const at = cute::max(0, cute::min(position, params.positions - 1));
  auto const ptr_cos = static_cast<float const*>(params.cos) + at * params.cos_stride0;
  auto const ptr_sin = static_cast<float const*>(params.sin) + at * params.sin_stride0;
  constexpr int vectors = size<1>(decltype(src.layout()){});
  CUTE_UNROLL
  for (int n = 0; n < (interleaved ? vectors : vectors / 2); ++n) {
    CUTE_UNROLL
    for (int v = 0; v < size<0>(src); v += interleaved ? 2 : 1) {
      int const angle = interleaved ? element(v, n) / 2 : element(v, n);
      float const cos = ptr_cos[angle];
      float const sin = ptr_sin[angle];
      auto const other = interleaved ? make_coord(v + 1, n) : make_coord(v, n + vectors / 2);
      float const a = float(src(v,n));
      float const b = float(src(other));
      dst(v,n)   = keep(__fmaf_rn(a, cos, -__fmul_rn(b, sin)));
      dst(other) = keep(__fmaf_rn(b, cos, __fmul_rn(a, sin)));
    }
  }
}
