// One thread asks TMA for the k-tiles of this CTA, as stages become empty.
template <class GA, class GB, class SA, class SB>
CUTE_DEVICE
void
produce([[ c.plan.name() ]]_params const& params, GA const& gA, GB const& gB, SA const& sA, SB const& sB, Barriers& barriers)
{
  prefetch_tma_descriptor(&params.map_a);
  prefetch_tma_descriptor(&params.map_b);
  auto const [tAgA, tAsA] = tma_partition(TmaA{}, _0{}, Layout<_1>{}, group_modes<0,2>(sA), group_modes<0,2>(gA));
  auto const [tBgB, tBsB] = tma_partition(TmaB{}, _0{}, Layout<_1>{}, group_modes<0,2>(sB), group_modes<0,2>(gB));
  constexpr uint32_t bytes = sizeof(Element) * (size(TileA{}) + size(TileB{}));  // of a stage, zeros outside of the matrices too

  PipeState pipe;
  for (int k_tile = 0; k_tile < size<2>(gA); ++k_tile) {
    barriers.empty[pipe.stage].wait(pipe.phase ^ 1);  // a new barrier counts as one whose last phase is over
    auto& full = barriers.full[pipe.stage];
    full.arrive_and_expect_tx(bytes);
    auto& mbarrier = reinterpret_cast<uint64_t&>(full);
    copy(TmaA{}.with(&params.map_a, mbarrier), tAgA(_,k_tile), tAsA(_,pipe.stage));
    copy(TmaB{}.with(&params.map_b, mbarrier), tBgB(_,k_tile), tBsB(_,pipe.stage));
    pipe.advance();
  }
}
