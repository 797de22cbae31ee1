// Warpgroups multiply k-tiles as they arrive. Tensor cores keep 14 bits of a sum of 8-bit products, so it is added to a sum in f32
// every few k-tiles, and begins anew. Other warpgroups multiply meanwhile. Where that is after each k-tile, a warpgroup
// multiplies 64 of its rows at a time, a wave, and adds them, so that the sums of all waves share registers. `meanwhile` runs
// while WGMMA does.
constexpr int promotes_every = [[ k_tiles ]];  // k-tiles
static_assert(promotes_every * size<1>(TileA{}) == [[ elements ]], "elements of K between additions in f32");
constexpr int mma_m = decltype(size<1>(partition_fragment_C(Mma{}, TileD{})))::value;          // MMA_M
constexpr int waves = promotes_every == 1 ? mma_m : 1;

// A wave's rows of a tensor (X,MMA_M,Y) or (X,MMA_M,Y,STAGES).
template <class T>
CUTE_DEVICE
auto
of_wave(T&& tensor, int wave)
{
  auto const crd = append<rank_v<T>>(make_coord(_, make_coord(_, wave)), _);
  return logical_divide(tensor, make_tile(_, Int<mma_m / waves>{}))(crd);                      // (X,ROWS,Y) or (X,ROWS,Y,STAGES)
}

{% match c.has_scales() %}
{%- when true -%}
{% include "gemm/scaled.cuh" %}
{%- when false -%}
{% include "gemm/unscaled.cuh" %}
{%- endmatch %}

template <bool TmaStore, class TCrA, class TCrB, class TCrC, class Team, class Meanwhile>
CUTE_DEVICE
void
multiply(int k_tiles, TCrA const& tCrA, TCrB const& tCrB, TCrC& tCrC, Barriers& barriers, PipeState& pipe, Release const& release,
         Team& team, Meanwhile const& meanwhile)
{
  Mma mma;
  Scales scales;
  Tensor tCrP = make_fragment_like(of_wave(tCrC, 0));                                          // (MMA,ROWS,MMA_N)
  clear(tCrC);
  if constexpr (!TmaStore || splits > 1) {
    if (k_tiles == 0) {
      return;  // K may be 0; with split-K a CTA may have no k-tile
    }
  }
  if constexpr (teams > 1) {
    team.wait(barriers);
  }
  CUTE_NO_UNROLL
  for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
    barriers.full[pipe.stage].wait(pipe.phase);
    CUTE_UNROLL
    for (int wave = 0; wave < waves; ++wave) {
      if (k_tile % promotes_every == 0) {
        mma.accumulate_ = GMMA::ScaleOut::Zero;
      }
      Tensor tCrA_w = of_wave(tCrA, wave);                                                     // (MMA,ROWS,MMA_K,STAGES)
      warpgroup_fence_operand(tCrP);
      warpgroup_arrive();
      CUTE_UNROLL
      for (int k = 0; k < size<2>(tCrA); ++k) {
        gemm(mma, tCrA_w(_,_,k,pipe.stage), tCrB(_,_,k,pipe.stage), tCrP);
        mma.accumulate_ = GMMA::ScaleOut::One;
      }
      warpgroup_commit_batch();
      if (wave == 0) {
        meanwhile();
      }
      warpgroup_wait<0>();
      warpgroup_fence_operand(tCrP);
      scales.read(wave, pipe.stage);
      if (wave == waves - 1) {
        release(barriers.empty[pipe.stage]);  // before the additions: the next copies begin meanwhile
      }
      if ((k_tile + 1) % promotes_every == 0 || k_tile + 1 == k_tiles) {
        Tensor tCrC_w = of_wave(tCrC, wave);                                                   // (MMA,ROWS,MMA_N)
        scales.promote(tCrP, tCrC_w);
      }
    }
    pipe.advance();
  }
  if constexpr (teams > 1) {
    team.hand_over(barriers);
  }
}
