// Warpgroups multiply k-tiles as they arrive. Tensor cores keep 14 bits of a sum of 8-bit products, so it is added to a sum in f32
// every few k-tiles, and begins anew. Other warpgroups multiply meanwhile. `meanwhile` runs while a k-tile is in flight in WGMMA.
constexpr int promotes_every = [[ k_tiles ]];  // k-tiles
static_assert(promotes_every * size<1>(TileA{}) == [[ elements ]], "elements of K between additions in f32");

template <bool TmaStore, class TCrA, class TCrB, class TCrC, class Team, class Meanwhile>
CUTE_DEVICE
void
multiply(int k_tiles, TCrA const& tCrA, TCrB const& tCrB, TCrC& tCrC, Barriers& barriers, PipeState& pipe, Release const& release,
         Team& team, Meanwhile const& meanwhile)
{
  Mma mma;
  Tensor tCrP = make_fragment_like(tCrC);                                                      // (MMA,MMA_M,MMA_N)
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
    if (k_tile % promotes_every == 0) {
      mma.accumulate_ = GMMA::ScaleOut::Zero;
    }
    warpgroup_fence_operand(tCrP);
    warpgroup_arrive();
    CUTE_UNROLL
    for (int k = 0; k < size<2>(tCrA); ++k) {
      gemm(mma, tCrA(_,_,k,pipe.stage), tCrB(_,_,k,pipe.stage), tCrP);
      mma.accumulate_ = GMMA::ScaleOut::One;
    }
    warpgroup_commit_batch();
    meanwhile();
    warpgroup_wait<0>();
    warpgroup_fence_operand(tCrP);
    release(barriers.empty[pipe.stage]);
    if ((k_tile + 1) % promotes_every == 0 || k_tile + 1 == k_tiles) {
      CUTE_UNROLL
      for (int i = 0; i < size(tCrC); ++i) {
        tCrC(i) += tCrP(i);
      }
    }
    pipe.advance();
  }
  if constexpr (teams > 1) {
    team.hand_over(barriers);
  }
}
