// Warpgroups multiply k-tiles as they arrive. While one k-tile is in flight in WGMMA, the stage of the one before is released.{% if has_meanwhile() %}
// Then `meanwhile` runs.{% endif %}
template <bool TmaStore, class TCrA, class TCrB, class TCrC{% if has_meanwhile() %}, class Meanwhile{% endif %}>
CUTE_DEVICE
void
multiply(int k_tiles, TCrA const& tCrA, TCrB const& tCrB, TCrC& tCrC, Barriers& barriers, PipeState& pipe, Release const& release{% if teams > 1 %}, Order& order{% endif %}{% if has_meanwhile() %}, Meanwhile const& meanwhile{% endif %})
{
  Mma mma;
{% if c.splits() > 1 %}  constexpr bool may_be_none = true;       // a part of K may have no k-tile
{% else %}  constexpr bool may_be_none = !TmaStore;  // K may be 0
{% endif %}  if constexpr (may_be_none) {
    clear(tCrC);
    if (k_tiles == 0) {
      return;  // before any wait for WGMMA: else two paths define the accumulators, and ptxas moves them before that wait (C7514)
    }
  } else {
    mma.accumulate_ = GMMA::ScaleOut::Zero;
  }
  int read = 0;  // the stage of the k-tile before
{% if teams > 1 %}  order.wait(barriers);
{% endif %}  CUTE_NO_UNROLL
  for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
    barriers.full[pipe.stage].wait(pipe.phase);
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
{% if has_meanwhile() %}    meanwhile();
{% endif %}    read = pipe.stage;
    pipe.advance();
  }
{% if teams > 1 %}  order.hand_over(barriers);
{% endif %}  warpgroup_wait<0>();
  warpgroup_fence_operand(tCrC);
  release(barriers.empty[read]);
}
