template <bool TmaStore, class SA, class SB, class SD, class Team>
CUTE_DEVICE
void
consume(Params const& params, Scheduler tiles, SA const& sA, SB const& sB, SD const& sD, Barriers& barriers, Team const& of)
{
  auto const thr_mma = Mma{}.get_slice(threadIdx.x % size(Mma{}));
  Tensor tCrA = thr_mma.make_fragment_A(thr_mma.partition_A(sA));                              // (MMA,MMA_M,MMA_K,STAGES)
  Tensor tCrB = thr_mma.make_fragment_B(thr_mma.partition_B(sB));                              // (MMA,MMA_N,MMA_K,STAGES)
  decltype(partition_fragment_C(Mma{}, TileD{})) tCrC;                                         // (MMA,MMA_M,MMA_N)
  Release const release(tiles);
  PipeState pipe;
  Team team = of;
{%- match c.counts() %}
{%- when Counts::Alike %}
  int const k_tiles = tiles.k_tiles(ceil_div(params.k, size<1>(TileA{})));
  if constexpr (teams > 1) {
    tiles.advance(team.index);  // to this team's first tile
    team.skip(pipe, team.index * k_tiles);
  }
{%- when Counts::OfShares | Counts::OfGroups %}
{%- endmatch %}
  Store<TmaStore, SD> store{params, sD, tiles.rank_k};
  cudaGridDependencySynchronize();  // PDL: the kernel before this one has finished
  for (; tiles.has_tile(); tiles.advance(teams)) {
    auto const crd_D = tiles.crd();                                                            // (m,n[[ c.modes_l() ]])
{%- match c.counts() %}
{%- when Counts::Alike %}
{%- when Counts::OfShares %}
    int const k_tiles = tiles.k_tiles();
    // Else two paths define the accumulators, and ptxas moves them before WGMMA has ended (C7514).
    __builtin_assume(!TmaStore || k_tiles > 0);
{%- when Counts::OfGroups %}
    team.k = group_of_k(params, crd_D).k;
    int const k_tiles = ceil_div(team.k, size<1>(TileA{}));
{%- endmatch %}
    multiply<TmaStore>(k_tiles, tCrA, tCrB, tCrC, barriers, pipe, release, team, [] {});
    if constexpr (teams > 1) {
      team.skip(pipe, (teams - 1) * k_tiles);
    }
    if constexpr (splits > 1) {
      team.add_up(tCrC);
    }
{%- if c.streams_k() %}
    if (tiles.is_shared()) {
      give_sums(params, tiles, tCrC);
      continue;
    }
{%- endif %}
    auto const tRsD = store.staged();                                                          // (CPY,CPY_PART,BUFFERS)
{%- match c.scale_d() %}
{%- when Some(_) %}
    quantise<TmaStore>(params, crd_D, tCrC);
    store_quantised(store, crd_D, tCrC, tRsD);
{%- when None %}
    round_tile<TmaStore>(params, crd_D, tiles.rank_k, tCrC, _0{},
      [&](int part) { store.acquire(part); },
      [&](int, int i, auto const&... of) { store.write(tRsD, i, of...); },
      [&](int part) { store.commit(crd_D, part); });
{%- endmatch %}
  }
  if constexpr (splits > 1) {
    team.wait_until_read();
  }
  if constexpr (TmaStore) {
    if (threadIdx.x % 128 == 0) {
      tma_store_wait<0>();  // TMA must have read shared memory before the CTA exits
    }
  }
}
