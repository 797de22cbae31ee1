// Cooperative, of groups along K: all warpgroups compute each tile together. The last k-tile of a group may have columns of A and
// rows of B of the next one, which are cleared.
using Barriers = StageBarriers;

struct Team {
  Element* a;
  Element* b;
  int k = 0;  // of the tile's group

  template <class Shared>
  CUTE_DEVICE
  Team(Scheduler const&, Shared& shared, int)
    : a(shared.a),
      b(shared.b)
  {}

  template <class SD>
  CUTE_DEVICE
  SD const&
  own(SD const& sD) const
  {
    return sD;
  }

  // Clears a stage from some k on, in vectors along the other mode.
  template <class S>
  CUTE_DEVICE
  static void
  clear_from(S const& s, int from, int stage)
  {
    Tensor sV = recast<uint128_t>(s);                                                          // (VEC,BK,STAGES)
    for (int i = threadIdx.x % size(Mma{}); i < size<0>(sV) * (size<1>(sV) - from); i += size(Mma{})) {
      sV(i % size<0>(sV), from + i / size<0>(sV), stage) = uint128_t{};
    }
  }

  CUTE_DEVICE
  void
  clear_tail(int k_tile, int stage) const
  {
    int const inside = k - k_tile * size<1>(TileA{});
    if (inside < size<1>(TileA{})) {
      clear_from(make_tensor(make_smem_ptr(a), SmemA{}), inside, stage);
      clear_from(make_tensor(make_smem_ptr(b), SmemB{}), inside, stage);
      cutlass::arch::fence_view_async_shared();  // WGMMA reads it
      cutlass::arch::NamedBarrier::sync(size(Mma{}), 4);  // all warpgroups have cleared their share
    }
  }
};
