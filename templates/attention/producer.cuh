// One warp computes what there is to do; one of its threads asks TMA for the tiles of Q, K and V, as stages become empty.
CUTE_DEVICE
void
produce(Params const& params, SharedStorage& shared)
{
  Tensor sQ = make_tensor(make_smem_ptr(shared.q), SmemQ{});                                     // (BM,D,1)
  Tensor sK = make_tensor(make_smem_ptr(shared.k), SmemK{});                                     // (BN,D,STAGES)
  Tensor sV = make_tensor(make_smem_ptr(shared.v), SmemV{});                                     // (DV,BN,STAGES)
  bool const asks = elect_one_sync();
  auto const fill = [&](auto const& tma, CUtensorMap const& map, auto& ring, auto& at, auto const& src, auto const& dst) {
    if (asks) {
      ring.empty[at.stage].wait(at.phase ^ 1);  // on a new barrier, a wait for the previous phase returns at once
      ring.full[at.stage].arrive_and_expect_tx(sizeof(Element) * size<0>(dst));  // TMA's zeros outside of the tensor count
      copy_all(tma.with(&map, reinterpret_cast<uint64_t&>(ring.full[at.stage]), 0), src, dst(_,at.stage));
    }
    at.advance();
  };
  auto const parts = [](auto const& tma, auto const& dst, auto const& src) {
    return tma_partition(tma, _0{}, Layout<_1>{}, group_modes<0,2>(dst), group_modes<0,2>(src));
  };
  Positions at;
  Works works{params};
  Work work;
  while (works.next(work)) {
    Steps const all(params, work);
    Tensor gQ = local_tile(q_of(params, work.q), TileQ{}, make_coord(work.first / size<0>(TileQ{}), _0{}));  // (BM,D)
[[ c.keys ]]
    auto const fill_k = [&](int i) {
      if (i < all.count) {
        fill(TmaK{}, params.map_k, shared.barriers.keys, at.k, get<0>(of_k)(_,all.at(i)), get<1>(of_k));
      }
    };
{%- if c.emptied().is_some() %}
    Walk walk(all);
    fill_k(walk.after);
{%- else %}
    fill_k(0);
{%- endif %}
    fill(TmaQ{}, params.map_q, shared.barriers.queries, at.q, get<0>(of_q), get<1>(of_q));
{%- if c.emptied().is_some() %}
    CUTE_NO_UNROLL
    while (walk.after < all.count) {
      int const i = walk.next();
      fill_k(walk.after);
{%- else %}
    CUTE_NO_UNROLL
    for (int i = 0; i < all.count; ++i) {
      fill_k(i + 1);
{%- endif %}
      fill(TmaV{}, params.map_v, shared.barriers.values, at.v, get<0>(of_v)(_,all.at(i)), get<1>(of_v));
    }
  }
}
