// Stores a part of D that waits in registers.
template <class StoreD, class Crd, class TRrD, class TRsD>
CUTE_DEVICE
void
store_kept(StoreD& store, Crd const& crd_D, TRrD const& tRrD, TRsD const& tRsD, int part)
{
  store.acquire(part);
  CUTE_UNROLL
  for (int i = 0; i < size<1>(tRsD); ++i) {
    copy(StageD{}, recast<ElementD>(tRrD(_,i,part)), tRsD(_,i,store.buffer));
  }
  store.commit(crd_D, part);
}

// Stores all parts of the last tile. Nothing is multiplied any more, and what has no buffer is written where this warpgroup's rows of A
// were.
template <bool TmaStore, class Crd, class TRrD, class SD>
CUTE_DEVICE
void
store_last([[ c.plan.name() ]]_params const& params, Crd const& crd_D, TRrD const& tRrD, SD const& sD)
{
  Tensor sDA = make_tensor(sD.data(), SmemDA{});                                               // (PART_M,PART_N,BUFFERS+LENT)
  Store<TmaStore, decltype(sDA)> store{params, sDA};
  Tensor tRsD = store.staged(threadIdx.x % size(Mma{}));                                       // (CPY,CPY_PART,BUFFERS+LENT)
  if constexpr (!store.whole) {
    if (threadIdx.x % 128 == 0) {
      tma_store_wait<0>();  // buffers are taken from the first on, which is not the one that was stored longest ago
    }
  }
  CUTE_UNROLL
  for (int part = 0; part < parts; ++part) {
    store_kept(store, crd_D, tRrD, tRsD, part);
  }
}
