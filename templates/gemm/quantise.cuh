{% include "larger.cuh" %}

// Computes the epilogue of a tile in place of its accumulators, and scales the results.
// 128 of a row share a scale. Four lanes have a row.
template <bool TmaStore, class Crd, class TCrC>
CUTE_DEVICE
void
quantise(Params const& params, Crd const& crd_D, TCrC& tCrC)
{
  int const thread = threadIdx.x % size(Mma{});
  Tensor tRrC = [[ c.in_copies("thread", "tCrC") ]];                                     // ((CPY,CPY_TILE),MMA_M,_1)
  auto const keep = [&](int part, int i, auto const& of) {
    CUTE_UNROLL
    for (int v = 0; v < size(of); ++v) {
      tRrC(make_coord(v, part % parts_n * copies + i), part / parts_n, _0{}) = of(v);
    }
  };
  round_tile<TmaStore>(params, crd_D, 0, tCrC, _0{}, [](int) { __syncwarp(); }, keep, [](int) {});

{% include "gemm/matrix.cuh" %}
  auto const shape_D = make_shape([[ c.rows_d() ]], params.n);
  Tensor cD = local_tile(make_identity_tensor(shape_D), TileD{}, take<0,2>(crd_D));              // (BM,BN) -> (m,n)
  Tensor tCcD = Mma{}.get_slice(anew(thread)).partition_C(cD);                                 // (MMA,MMA_M,MMA_N) -> (m,n)
  constexpr int columns = [[ c.each("128", "256") ]];
  constexpr int octets = columns / 8;
  using Fragment = decltype(shape<0>(tCrC));
  static_assert(rank(Fragment{}) == 3 && size<0>(Fragment{}) == 2 && size<2>(Fragment{}) % octets == 0, "(COLUMN,ROW,OCTET)");
  CUTE_UNROLL
  for (int m = 0; m < size<1>(tCrC); ++m) {
    CUTE_UNROLL
    for (int row = 0; row < size<0,1>(tCrC); ++row) {
      CUTE_UNROLL
      for (int first = 0; first < size<0,2>(tCrC); first += octets) {
{%- let at = c.each("i % 2, row, first + i / 2", "0, row, first + i") %}
        auto const at = [&](int i) { return make_coord(make_coord([[ at ]]), m, _0{}); };
        float largest = 0;
        CUTE_UNROLL
        for (int i = 0; i < [[ c.each("2 * octets", "octets") ]]; ++i) {
          // Columns past the end of D do not count.
          largest = get<1>(tCcD(at(i))) < params.n ? larger(largest, fabsf(tCrC(at(i)))) : largest;
        }
        CUTE_UNROLL
        for (int lanes = 1; lanes < 4; lanes *= 2) {
          largest = larger(largest, __shfl_xor_sync(~0u, largest, lanes));
        }
        CUTE_UNROLL
        for (int i = 0; i < [[ c.each("2 * octets", "octets") ]]; ++i) {
          tCrC(at(i)) = get<0>(Quantise{}(tCrC(at(i)), largest));
        }
        auto const crd = tCcD(at(0));
        if (threadIdx.x % 4 == 0 && elem_less(crd, shape_D)) {
          m[[ t.is.name ]](get<0>(crd), get<1>(crd) / columns) = get<1>(Quantise{}(0.0f, largest));
        }
      }
    }
  }
}

// Rounds a quantised tile, and stores it slice by slice.
template <class StoreD, class Crd, class TCrC, class TRsD>
CUTE_DEVICE
void
store_quantised(StoreD& store, Crd const& crd_D, TCrC const& tCrC, TRsD const& tRsD)
{
  Tensor tRrC = [[ c.in_copies("threadIdx.x % size(Mma{})", "tCrC") ]];                  // ((CPY,CPY_TILE),MMA_M,_1)
  CUTE_UNROLL
  for (int part = 0; part < parts; ++part) {
    store.acquire(part);
    CUTE_UNROLL
    for (int i = 0; i < copies; ++i) {
      Tensor tRrD = make_tensor<ElementD>([[ c.each("shape<0,0>(tRrC)", "_1{}") ]]);                                   // (CPY)
      CUTE_UNROLL
      for (int v = 0; v < size(tRrD); ++v) {
        float const value = tRrC(make_coord(v, part % parts_n * copies + i), part / parts_n, _0{});
        tRrD(v) = [[ c.rounded("value") ]];
      }
      store.write(tRsD, i, tRrD);
    }
    store.commit(crd_D, part);
  }
}
