{% if c.part.stays() %}// A resident operand. Where the number of k-tiles divides the number of stages, each stage always holds the same k-tile.
// It is loaded again only when another tile of the operand is needed.
struct Staying {
  int lacks = 0;  // stages that hold another tile
  int tile = -1;
  int l = -1;

  CUTE_DEVICE
  void
  want(int tile, int l = 0)
  {
    if (tile != this->tile || l != this->l) {
      lacks = size<2>(SmemA{});
      this->tile = tile;
      this->l = l;
    }
  }
};

{% endif %}// One thread issues the TMA loads of this CTA's k-tiles as stages become empty.
template <class SA, class SB>
CUTE_DEVICE
void
produce([[ c.plan.name() ]]_params const& params, Scheduler tiles, SA const& sA, SB const& sB, Barriers& barriers)
{
{% if c.batched() %}  Tensor mA = TmaA{}.get_tma_tensor(make_shape(params.m, params.k, params.l));                 // (M,K,L) -> TMA coordinate
  Tensor mB = TmaB{}.get_tma_tensor(make_shape(params.n, params.k, params.l));                 // (N,K,L) -> TMA coordinate
{% else %}  Tensor mA = TmaA{}.get_tma_tensor(make_shape(params.m, params.k));                           // (M,K) -> TMA coordinate
  Tensor mB = TmaB{}.get_tma_tensor(make_shape(params.n, params.k));                           // (N,K) -> TMA coordinate
{% endif %}  Tensor gA = local_tile(mA, TileA{}, make_coord(_, _));                                       // (BM,BK,m,k[[ c.modes_l() ]])
  Tensor gB = local_tile(mB, TileB{}, make_coord(_, _));                                       // (BN,BK,n,k[[ c.modes_l() ]])
  auto const [tAgA, tAsA] = tma_partition(TmaA{}, tiles.rank_n, make_layout(size<1>(Cluster{})),
                                          group_modes<0,2>(sA), group_modes<0,2>(gA));         // (TMA,m,k[[ c.modes_l() ]]), (TMA,STAGES)
  auto const [tBgB, tBsB] = tma_partition(TmaB{}, tiles.rank_m, make_layout(size<0>(Cluster{})),
                                          group_modes<0,2>(sB), group_modes<0,2>(gB));         // (TMA,n,k[[ c.modes_l() ]]), (TMA,STAGES)
  auto const ranks = make_layout(Cluster{});                                                   // (m,n) -> CTA of the cluster
  uint16_t mask_a = 0;  // multicast: the CTAs that receive this CTA's loads
  uint16_t mask_b = 0;
  for (int n = 0; n < size<1>(Cluster{}); ++n) {
    mask_a |= 1 << {% if c.splits() > 1 %}({% endif %}ranks(tiles.rank_m, n){% if c.splits() > 1 %} + size(Cluster{}) * tiles.rank_k){% endif %};
  }
  for (int m = 0; m < size<0>(Cluster{}); ++m) {
    mask_b |= 1 << {% if c.splits() > 1 %}({% endif %}ranks(m, tiles.rank_n){% if c.splits() > 1 %} + size(Cluster{}) * tiles.rank_k){% endif %};
  }
{% if !c.part.cuts("A") %}  constexpr uint32_t bytes_a = sizeof(Element) * size(TileA{});  // per stage; TMA's zeros outside of the matrix count
{% endif %}{% if !c.part.cuts("B") %}  constexpr uint32_t bytes_b = sizeof(Element) * size(TileB{});
{% endif %}
{% if c.part.stays() %}  Staying of_a, of_b;
{% endif %}  PipeState pipe;
  bool is_first = true;
  for (; tiles.has_tile(); tiles.advance()) {
    auto const [m, n{% if c.batched() %}, l{% endif %}] = tiles.crd();
{% if c.splits() > 1 %}    int const first = tiles.first_k_tile(size<3>(gA));
    int const end = first + tiles.k_tiles(size<3>(gA));
{% endif %}{% if c.streams_k() %}    int const first = tiles.first_k_tile();
    int const end = first + tiles.k_tiles();
{% endif %}{% if c.part.stays() %}    of_a.want(m{% if c.batched() %}, l * params.each_a{% endif %});
    of_b.want(n{% if c.batched() %}, l * params.each_b{% endif %});
{% endif %}    if (is_first) {
      cudaGridDependencySynchronize();  // PDL: wait for the kernel before this one only now, after the first tile's coordinates are known
      is_first = false;
    }
    CUTE_NO_UNROLL
    for (int k_tile = {% if c.splits() > 1 || c.streams_k() %}first; k_tile < end{% else %}0; k_tile < size<3>(gA){% endif %}; ++k_tile) {
      barriers.empty[pipe.stage].wait(pipe.phase ^ 1);  // on a new barrier, a wait for the previous phase returns at once
      auto& full = barriers.full[pipe.stage];
{% if c.part.stays() %}      full.arrive_and_expect_tx((of_a.lacks > 0 ? [[ c.bytes("A") ]] : 0) + (of_b.lacks > 0 ? [[ c.bytes("B") ]] : 0));
{% else %}      full.arrive_and_expect_tx([[ c.bytes("A") ]] + [[ c.bytes("B") ]]);
{% endif %}      auto& mbarrier = reinterpret_cast<uint64_t&>(full);
{% if c.part.stays() %}      if (of_a.lacks > 0) {
        copy_all(TmaA{}.with(&params.map_a, mbarrier, mask_a), tAgA(_,m,k_tile{% if c.batched() %},l * params.each_a{% endif %}), tAsA(_,pipe.stage));
        of_a.lacks -= params.stays;
      }
      if (of_b.lacks > 0) {
        copy_all(TmaB{}.with(&params.map_b, mbarrier, mask_b), tBgB(_,n,k_tile{% if c.batched() %},l * params.each_b{% endif %}), tBsB(_,pipe.stage));
        of_b.lacks -= params.stays;
      }
{% else %}      copy_all(TmaA{}.with(&params.map_a, mbarrier, mask_a), tAgA(_,m,k_tile{% if c.batched() %},l * params.each_a{% endif %}), tAsA(_,pipe.stage));
      copy_all(TmaB{}.with(&params.map_b, mbarrier, mask_b), tBgB(_,n,k_tile{% if c.batched() %},l * params.each_b{% endif %}), tBsB(_,pipe.stage));
{% endif %}      pipe.advance();
    }
  }
  if constexpr (size(Cluster{}) > 1) {
    // This CTA must not exit before the cluster's other CTAs have arrived at its barriers.
    for (int stage = 0; stage < size<2>(SmemA{}); ++stage) {
      barriers.empty[pipe.stage].wait(pipe.phase ^ 1);
      pipe.advance();
    }
  }
}
