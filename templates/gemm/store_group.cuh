
  // Each warpgroup stores its own rows, by TMA where the whole slice is in the group. TMA would store the rows behind it, too.
  template <class Crd>
  CUTE_DEVICE
  void
  store_by_tma(Crd const& crd) const
  {
    bool const is_whole = (get<0>(crd) + 1) * size<0>(PartD{}) <= rows_of(crd);
    if (!is_whole) {
      store_elements(crd);
    }
    int const warpgroup = threadIdx.x % size(Mma{}) / 128;
    Tensor mD = of_group(TmaD{}.get_tma_tensor([[ c.d().shape ]]), crd);           // (M,N) -> TMA coordinate
    Tensor gD = local_tile(mD, PartD{}, make_coord(_, _));                              // (PART_M,PART_N,m,n)
    auto const warpgroups = Layout<Int<size(Mma{}) / 128>>{};
    auto const parts = tma_partition(TmaD{}, warpgroup, warpgroups, group_modes<0,2>(sD), group_modes<0,2>(gD));
    Tensor tDgD = get<0>(parts);                                                               // (TMA,m,n)
    Tensor tDsD = get<1>(parts);                                                               // (TMA,BUFFERS)
    if (threadIdx.x % 128 == 0) {
      if (is_whole) {
        auto const at = tDgD(_0{}, get<0>(crd), get<1>(crd));
        auto const hint = params.passes_l2 ? TMA::CacheHintSm90::EVICT_FIRST : TMA::CacheHintSm90::EVICT_NORMAL;
{%- for t in c.written() %}
        tma_store(params.map_[[ t.is.param ]], tDsD(_,place([[ c.output_of(t) ]])), at, static_cast<uint64_t>(hint));
{%- endfor %}
      }
      tma_store_arrive();  // each slice counts, so that `acquire` waits for the right ones
    }
  }
