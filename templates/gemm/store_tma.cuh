
  // Each warpgroup stores its own rows.
  template <class Crd>
  CUTE_DEVICE
  void
  store_by_tma(Crd const& crd) const
  {
    int const warpgroup = threadIdx.x % size(Mma{}) / 128;
    Tensor mD = TmaD{}.get_tma_tensor([[ c.d().shape ]]);                          // (M,N[[ c.modes_l()|upper ]]) -> TMA coordinate
    Tensor gD = local_tile(mD, PartD{}, make_coord(_, _));                              // (PART_M,PART_N,m,n[[ c.modes_l() ]])
    auto const warpgroups = Layout<Int<size(Mma{}) / 128>>{};
    auto const parts = tma_partition(TmaD{}, warpgroup, warpgroups, group_modes<0,2>(sD), group_modes<0,2>(gD));
    Tensor tDgD = get<0>(parts);                                                               // (TMA,m,n[[ c.modes_l() ]])
    Tensor tDsD = get<1>(parts);                                                               // (TMA,BUFFERS)
    if (threadIdx.x % 128 == 0) {
      auto const at = tDgD(prepend(crd, _0{}));
      auto const hint = params.passes_l2 ? TMA::CacheHintSm90::EVICT_FIRST : TMA::CacheHintSm90::EVICT_NORMAL;
{%- for t in c.written() %}
      tma_store(params.map_[[ t.is.param ]], tDsD(_,place([[ c.output_of(t) ]])), at, static_cast<uint64_t>(hint));
{%- endfor %}
      tma_store_arrive();
    }
  }
