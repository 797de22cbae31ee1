// Warpgroups multiply k-tiles as they arrive. While one k-tile is in flight in WGMMA, the stage of the one before is released, and
// then `meanwhile` runs.
template <bool TmaStore, class TCrA, class TCrB, class TCrC, class Team, class Meanwhile>
CUTE_DEVICE
void
multiply(int k_tiles, TCrA const& tCrA, TCrB const& tCrB, TCrC& tCrC, Barriers& barriers, PipeState& pipe, Release const& release,
         Team& team, Meanwhile const& meanwhile)
{
  Mma mma;
  constexpr bool may_be_none = [[ c.may_be_none() ]];  // K may be 0; with split-K a CTA may have no k-tile
  if constexpr (may_be_none) {
    clear(tCrC);
    if (k_tiles == 0) {
      return;  // before any wait for WGMMA: else two paths define the accumulators, and ptxas moves them before that wait (C7514)
    }
  } else {
    mma.accumulate_ = GMMA::ScaleOut::Zero;
  }
  int read = 0;  // the stage of the k-tile before
  if constexpr (teams > 1) {
    team.wait(barriers);
  }
  CUTE_NO_UNROLL
  for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
    barriers.full[pipe.stage].wait(pipe.phase);
{%- if c.groups_k() %}
    team.clear_tail(k_tile, pipe.stage);
{%- endif %}
    warpgroup_fence_operand(tCrC);
    warpgroup_arrive();
    CUTE_UNROLL
    for (int k = 0; k < size<2>(tCrA); ++k) {
      gemm(mma, tCrA(_,_,k,pipe.stage), tCrB(_,_,k,pipe.stage), tCrC);
      mma.accumulate_ = GMMA::ScaleOut::One;
    }
    warpgroup_commit_batch();
    warpgroup_wait<1>();
    warpgroup_fence_operand(tCrC);
    if (k_tile > 0) {
      release(barriers.empty[read]);
    }
    meanwhile();
    read = pipe.stage;
    pipe.advance();
  }
  if constexpr (teams > 1) {
    team.hand_over(barriers);
  }
  warpgroup_wait<0>();
  warpgroup_fence_operand(tCrC);
  release(barriers.empty[read]);
}
