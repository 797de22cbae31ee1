// Rotates two elements. One product is rounded, the other one is not.
CUTE_DEVICE
void
turn(Element& x, Element& y, float cos, float sin)
{
  float const a = float(x);
  float const b = float(y);
  x = Element(__fmaf_rn(a, cos, -__fmul_rn(b, sin)));
  y = Element(__fmaf_rn(b, cos, __fmul_rn(a, sin)));
}

// Rotates what a thread has of a row: (CPY,CPY_N), of which the second half lies half of the rotated elements behind the first.
template <class Elements, class Crd>
CUTE_DEVICE
void
rotate(Params const& params, int position, Elements&& elements, Crd const& element)
{
  constexpr bool interleaved = [[ interleaved ]];  // neighbours are rotated together
  int64_t const at = cute::max(0, cute::min(position, params.positions - 1));
  auto const ptr_cos = static_cast<float const*>(params.cos) + at * params.cos_stride0;
  auto const ptr_sin = static_cast<float const*>(params.sin) + at * params.sin_stride0;
  constexpr int vectors = size<1>(decltype(elements.layout()){});
  CUTE_UNROLL
  for (int n = 0; n < (interleaved ? vectors : vectors / 2); ++n) {
    CUTE_UNROLL
    for (int v = 0; v < size<0>(elements); v += interleaved ? 2 : 1) {
      int const angle = interleaved ? element(v, n) / 2 : element(v, n);
      Element& other = interleaved ? elements(v + 1,n) : elements(v,n + vectors / 2);
      turn(elements(v,n), other, ptr_cos[angle], ptr_sin[angle]);
    }
  }
}
