// Block scales: one for some rows of an operand and 128 elements of K. A stage has one for each granule: rows of a tile that share
// a scale wherever the tile lies. A warp for each operand copies them, so that they may lie anywhere.
{%- for s in c.scales() %}
// The scale of each row and k-tile of [[ s.factor ]].
CUTE_DEVICE
auto
all_[[ s.param ]](Params const& params)
{
  return make_tensor(make_gmem_ptr(static_cast<[[ c.scale() ]] const*>(params.[[ s.param ]])),
                     [[ s.shape ]],
                     [[ s.strides ]]);  // ((ROWS,BLOCKS),k[[ s.modes_l ]])
}
{% endfor %}
{%- if c.has_exponents() %}
// 2^(exponent - 127): 255 is NaN, and 0 gives a number below the normal ones.
CUTE_DEVICE
float
power_of_two(uint8_t exponent)
{
  uint32_t const bits = exponent == 0 ? 1u << 22 : uint32_t(exponent) << 23;
  return __uint_as_float(exponent == 255 ? bits | 1u << 22 : bits);
}
{% endif %}
// Copies the scales of this CTA's k-tiles as stages become empty: of rows along mode Mode of D. Addresses are computed once a tile,
// because consumers wait for what a single warp does for each k-tile.
template <int Mode, int Granule, class Copy, class MS, class SS>
CUTE_DEVICE
void
produce_scales(Copy const& copy, Scheduler tiles, MS const& mS, SS const& sS, Barriers& barriers)
{
  int const lane = threadIdx.x % 32;
  auto const thr_copy = copy.get_slice(lane);
  Tensor tScS = thr_copy.partition_S(make_identity_tensor(take<0,2>(shape(SS{}))));            // (CPY,..) -> (granule,0)
  Tensor tSsS = thr_copy.partition_D(sS);                                                      // (CPY,CPY_GRANULES,_1,STAGES)
  static_assert(Granule == 1 || decltype(size(tScS))::value == 1, "the scales of a lane are equally far apart");
  int64_t const apart = size(copy) * stride<0,1>(mS);
  PipeState pipe;
  cudaGridDependencySynchronize();  // PDL: the kernel before this one may write the scales
  for (; tiles.has_tile(); tiles.advance()) {
    auto const crd = tiles.crd();                                                              // (m,n[[ c.modes_l() ]])
    Tensor gS = of_batch(mS, crd);                                                             // ((ROWS,BLOCKS),k)
    int const first = tiles.first_k_tile(size<1>(gS));
    int const k_tiles = tiles.k_tiles(size<1>(gS));
{%- match c.grouped() %}
{%- when true %}
    // Rows of A are a group's, from its first one on.
    int const begin = Mode == 0 ? get<3>(crd) : 0;
    int const end   = Mode == 0 ? begin + rows_of(crd) : int(size<0>(gS));
{%- when false %}
    int const begin = 0;
    int const end   = size<0>(gS);
{%- endmatch %}
    int const row = begin + get<Mode>(crd) * size<Mode>(TileD{}) + get<0>(tScS(0)) * Granule;  // of the lane's first scale
    [[ c.scale() ]] const* next = &gS(row, first);                                                       // of the next k-tile
    CUTE_NO_UNROLL
    for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
{%- match c.scale_type() %}
{%- when ScaleType::F32 %}
{% include "gemm/scales_f32.cuh" %}
{%- when ScaleType::Ue8m0 %}
{% include "gemm/scales_ue8m0.cuh" %}
{%- endmatch %}
      pipe.advance();
    }
  }
}

// A thread's scales of a wave's sums over 128 of K. They are read when WGMMA has ended, so that no register holds them meanwhile.
struct Scales {
  using TileW = decltype(replace<0>(TileD{}, Int<size<0>(TileD{}) / waves>{}));                // of a wave
  using Sums = decltype(partition_fragment_C(Mma{}, TileW{}));                                 // (MMA,ROWS,MMA_N)
{%- for s in c.scales() %}
  Sums tCr[[ s.name ]];
{%- endfor %}

  CUTE_DEVICE
  void
  read(int wave, int stage)
  {
    extern __shared__ __align__([[ c.align ]]) unsigned char smem[];
    auto& shared = *reinterpret_cast<SharedStorage*>(smem);
    auto const thr_mma = Mma{}.get_slice(threadIdx.x % size(Mma{}));
{%- for s in c.scales() %}
    Tensor s[[ s.name ]] = make_tensor(make_smem_ptr(shared.[[ s.param ]]), View[[ s.name ]]{});                // (BM,BN,STAGES)
    Tensor tCs[[ s.name ]] = of_wave(thr_mma.partition_C(s[[ s.name ]]), wave)(_,_,_,stage);              // (MMA,ROWS,MMA_N)
    CUTE_UNROLL
    for (int i = 0; i < size(tCs[[ s.name ]]); ++i) {
      tCr[[ s.name ]](i) = tCs[[ s.name ]](i);
    }
{%- endfor %}
    __syncwarp();  // all lanes have read the scales before the stage is released
  }

  // Adds the sums, each times the product of its two scales, to those in f32.
  template <class TCrP, class TCrC>
  CUTE_DEVICE
  void
  promote(TCrP const& tCrP, TCrC& tCrC) const
  {
    CUTE_UNROLL
    for (int i = 0; i < size(tCrP); ++i) {
      tCrC(i) = fmaf(__fmul_rn(tCrScaleA(i), tCrScaleB(i)), tCrP(i), tCrC(i));
    }
  }
};
