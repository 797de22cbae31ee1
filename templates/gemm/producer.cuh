// One thread issues the TMA loads of this CTA's k-tiles as stages become empty.
template <class SA, class SB>
CUTE_DEVICE
void
produce(Params const& params, Scheduler tiles, SA const& sA, SB const& sB, Barriers& barriers)
{
  Tensor mA = TmaA{}.get_tma_tensor([[ c.operands[0].shape ]]);                   // (M,K[[ c.modes_l()|upper ]]) -> TMA coordinate
  Tensor mB = TmaB{}.get_tma_tensor([[ c.operands[1].shape ]]);                   // (N,K[[ c.modes_l()|upper ]]) -> TMA coordinate
  Tensor gA = local_tile(mA, TileA{}, make_coord(_, _));                                       // (BM,BK,m,k[[ c.modes_l() ]])
  Tensor gB = local_tile(mB, TileB{}, make_coord(_, _));                                       // (BN,BK,n,k[[ c.modes_l() ]])
  auto const [tAgA, tAsA] = tma_partition(TmaA{}, tiles.rank_n, make_layout(size<1>(Cluster{})),
                                          group_modes<0,2>(sA), group_modes<0,2>(gA));  // (TMA,m,k[[ c.modes_l() ]]), (TMA,STAGES)
  auto const [tBgB, tBsB] = tma_partition(TmaB{}, tiles.rank_m, make_layout(size<0>(Cluster{})),
                                          group_modes<0,2>(sB), group_modes<0,2>(gB));  // (TMA,n,k[[ c.modes_l() ]]), (TMA,STAGES)
  uint16_t mask_a = 0;  // multicast: the CTAs that receive this CTA's loads
  uint16_t mask_b = 0;
  for (int n = 0; n < size<1>(Cluster{}); ++n) {
    mask_a |= 1 << rank_of(tiles.rank_m, n, tiles.rank_k);
  }
  for (int m = 0; m < size<0>(Cluster{}); ++m) {
    mask_b |= 1 << rank_of(m, tiles.rank_n, tiles.rank_k);
  }

  Residency of_a, of_b;
  PipeState pipe;
  bool is_first = true;
{%- match c.grouped() %}
{%- when true %}
  bool const loads = elect_one_sync();  // the other lanes look for groups
{%- when false %}
{%- endmatch %}
{%- if c.groups_k() %}
  cudaGridDependencySynchronize();  // PDL: the kernel before this one may write where groups end
{%- endif %}
  for (; tiles.has_tile(); tiles.advance()) {
    auto const crd = tiles.crd();                                                              // (m,n[[ c.modes_l() ]])
{%- if c.groups_k() %}
    GroupOfK const group = group_of_k(params, crd);
{%- endif %}
    int const first = tiles.first_k_tile(size<3>(gA));
{%- match c.grouped() %}
{%- when true %}
    int const end = loads ? first + tiles.k_tiles(size<3>(gA)) : first;
{%- when false %}
    int const end = first + [[ c.k_tiles() ]];
{%- endmatch %}
    of_a.want(get<0>(crd), matrix_a(params, crd));
    of_b.want(get<1>(crd), matrix_b(params, crd));
    if (is_first) {
      cudaGridDependencySynchronize();  // PDL: wait for the kernel before this one only now: the first tile's coordinates are known
      is_first = false;
    }
    CUTE_NO_UNROLL
    for (int k_tile = first; k_tile < end; ++k_tile) {
      barriers.empty[pipe.stage].wait(pipe.phase ^ 1);  // on a new barrier, a wait for the previous phase returns at once
      auto& full = barriers.full[pipe.stage];
      uint32_t const bytes_a = of_a.lacks > 0 ? [[ c.bytes("A") ]] : 0;  // TMA's zeros outside of the matrix count
      uint32_t const bytes_b = of_b.lacks > 0 ? [[ c.bytes("B") ]] : 0;
      full.arrive_and_expect_tx(bytes_a + bytes_b);
      auto& mbarrier = reinterpret_cast<uint64_t&>(full);
      if (of_a.lacks > 0) {
{%- match c.grouped() %}
{%- when true %}
        Tensor tAgA_m = k_tile_at(tAgA, get<0>(crd), k_tile, matrix_a(params, crd));           // (TMA)
        Tensor tAgA_k = from_group(tAgA_m, stride<0>(mA), crd);                                // (TMA)
{%- when false %}
        Tensor tAgA_k = k_tile_at(tAgA, get<0>(crd), k_tile, matrix_a(params, crd));           // (TMA)
{%- endmatch %}
        copy_all(TmaA{}.with(&params.map_a, mbarrier, mask_a), [[ c.box_of("A") ]], tAsA(_,pipe.stage));
        of_a.loaded(params);
      }
      if (of_b.lacks > 0) {
        Tensor tBgB_k = k_tile_at(tBgB, get<1>(crd), k_tile, matrix_b(params, crd));           // (TMA)
        copy_all(TmaB{}.with(&params.map_b, mbarrier, mask_b), [[ c.box_of("B") ]], tBsB(_,pipe.stage));
        of_b.loaded(params);
      }
      pipe.advance();
    }
  }
{%- match c.grouped() %}
{%- when true %}
  if (!loads) {
    return;
  }
{%- when false %}
{%- endmatch %}
  if constexpr (size(Cluster{}) > 1) {
    // This CTA must not exit before the cluster's other CTAs have arrived at its barriers.
    for (int stage = 0; stage < size<2>(SmemA{}); ++stage) {
      barriers.empty[pipe.stage].wait(pipe.phase ^ 1);
      pipe.advance();
    }
  }
}
