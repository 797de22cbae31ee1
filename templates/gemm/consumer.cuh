// Warpgroups multiply k-tiles as they arrive. While one is computed on, the one before is handed back.
template <class TCrA, class TCrB, class TCrC, class Release>
CUTE_DEVICE
void
multiply(int k_tiles, TCrA const& tCrA, TCrB const& tCrB, TCrC& tCrC, Barriers& barriers, PipeState& pipe, Release const& release{% if teams > 1 %}, Order& order{% endif %})
{
  Mma mma;
  mma.accumulate_ = GMMA::ScaleOut::Zero;
  int read = 0;  // the stage that was computed on last
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
    read = pipe.stage;
    pipe.advance();
  }
{% if teams > 1 %}  order.hand_over(barriers);
{% endif %}  warpgroup_wait<0>();
  warpgroup_fence_operand(tCrC);
  if (k_tiles > 0) {
    release(barriers.empty[read]);
  }
}

template <bool TmaStore, class SA, class SB, class SD>
CUTE_DEVICE
void
consume([[ c.plan.name() ]]_params const& params, Scheduler tiles, SA const& sA, SB const& sB, SD const& sD, Barriers& barriers{% if teams > 1 %}, int team{% endif %}{% if splits > 1 %}, float* parts{% endif %})
{
  Mma const mma;
  auto const thr_mma = mma.get_slice(threadIdx.x % size(Mma{}));
  Tensor tCrA = thr_mma.make_fragment_A(thr_mma.partition_A(sA));                              // (MMA,MMA_M,MMA_K,STAGES)
  Tensor tCrB = thr_mma.make_fragment_B(thr_mma.partition_B(sB));                              // (MMA,MMA_N,MMA_K,STAGES)
  Tensor tCrC = partition_fragment_C(mma, TileD{});                                            // (MMA,MMA_M,MMA_N)
{% if !streams_k %}  int const k_tiles = {% if splits > 1 %}tiles.k_tiles(ceil_div(params.k, size<1>(TileA{}))){% else %}ceil_div(params.k, size<1>(TileA{})){% endif %};
{% endif %}  Release const release(tiles);
  PipeState pipe;
{% if teams > 1 %}  Order order(team);
  tiles.advance(team);  // to its first tile
  pipe.advance(team * k_tiles);
{% endif %}{% if splits > 1 %}  Sums add_up(tiles, barriers, parts);
{% endif %}  int buffer = 0;
  for (; tiles.has_tile(); tiles.advance({% if teams > 1 %}teams{% endif %})) {
    auto const crd_D = tiles.crd();                                                            // (m,n[[ c.modes_l() ]])
{% if streams_k %}    int const k_tiles = tiles.k_tiles();
    if (TmaStore || k_tiles > 0) {
      // Accumulators that came from two places would be moved before WGMMA has ended (C7514).
      __builtin_assume(k_tiles > 0);
      multiply(k_tiles, tCrA, tCrB, tCrC, barriers, pipe, release);
    }
{% else %}    multiply(k_tiles, tCrA, tCrB, tCrC, barriers, pipe, release{% if teams > 1 %}, order{% endif %});
{% endif %}{% if teams > 1 %}    pipe.advance((teams - 1) * k_tiles);
{% endif %}{% if splits > 1 %}    if (k_tiles == 0) {
      clear(tCrC);
    }
    add_up(tCrC);
    store<TmaStore>(params, crd_D, tiles.rank_k, tCrC, false, sD, buffer);
{% else %}{% if streams_k %}    if (tiles.is_shared()) {
      give_sums(params, tiles, tCrC);
      continue;
    }
{% endif %}    store<TmaStore>(params, crd_D, tCrC, k_tiles == 0, sD, buffer);
{% endif %}  }
{% if splits > 1 %}  add_up.wait_until_read();
{% endif %}  if constexpr (TmaStore) {
    if (threadIdx.x % 128 == 0) {
      tma_store_wait<0>();  // shared memory outlives what reads it
    }
  }
}
