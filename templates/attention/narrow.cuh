// K and V have 8 bits in memory. They become 16 bits in registers, without rounding; scales are multiplied with what is computed.
CUTE_DEVICE
float
scale_of(void const* scales, int head)
{
  return static_cast<float const*>(scales)[head];
}

// The parameters of a work: scores are multiplied by the scale of K, too.
CUTE_DEVICE
Params
scaled(Params params, Work const& work)
{
  params.scale = __fmul_rn(params.scale, scale_of(params.scalek, work.k.head));
  return params;
}

// Four numbers of 8 bits as two pairs of 16.
CUTE_DEVICE
auto
widened(uint32_t four)
{
  using Numbers = cutlass::Array<Stored, 4>;
  auto const wide = cutlass::NumericArrayConverter<Element, Stored, 4>::convert(reinterpret_cast<Numbers const&>(four));
  return reinterpret_cast<cutlass::Array<uint32_t, 2> const&>(wide);
}

// Loads fragments of K: four neighbours of a row.
struct WidenK
{};

template <class Src, class Dst>
CUTE_DEVICE
void
copy_all(WidenK, Src const& src, Dst&& dst)
{
  CUTE_UNROLL
  for (int n = 0; n < size<1>(src); ++n) {
    Tensor four  = recast<uint32_t const>(src(_,n));                                           // (1)
    Tensor pairs = recast<uint32_t>(dst(_,n));                                                 // (2)
    auto const wide = widened(four(_0{}));
    pairs(_0{}) = wide[0];
    pairs(_1{}) = wide[1];
  }
}

// Loads fragments of V: four neighbours of two keys, a column of each of four atoms.
struct WidenV
{};

template <class Src, class Dst>
CUTE_DEVICE
void
copy_all(WidenV, Src const& src, Dst&& dst)
{
  using Atoms = Shape<Underscore,_4>;
  Tensor tiled_src = logical_divide(src, Atoms{});                                             // ((KEY,HALF),(ATOM,N))
  Tensor tiled_dst = logical_divide(dst, Atoms{});                                             // ((KEY,HALF),(ATOM,N))
  CUTE_UNROLL
  for (int n = 0; n < size<1,1>(tiled_src); ++n) {
    CUTE_UNROLL
    for (int half = 0; half < 2; ++half) {
      auto const of_key = [&](int key) {
        return recast<uint32_t const>(tiled_src(make_coord(key, half),make_coord(_, n)))(_0{});
      };
      uint32_t const first  = of_key(0);
      uint32_t const second = of_key(1);
      auto const low  = widened(__byte_perm(first, second, 0x5140));
      auto const high = widened(__byte_perm(first, second, 0x7362));
      CUTE_UNROLL
      for (int atom = 0; atom < 4; ++atom) {
        Tensor pair = recast<uint32_t>(tiled_dst(make_coord(_, half),make_coord(atom, n)));    // (1)
        pair(_0{}) = atom < 2 ? low[atom] : high[atom - 2];
      }
    }
  }
}
