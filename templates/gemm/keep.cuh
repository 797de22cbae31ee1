static_assert(offsetof(SharedStorage, a) == sizeof(ElementD) * cosize_v<SmemD> &&
              sizeof(ElementD) * cosize_v<SmemDA> <= offsetof(SharedStorage, b), "D's last tile extends into A's stages");

// Stores a slice of D that was kept in registers.
template <class StoreD, class Crd, class TRrD, class TRsD>
CUTE_DEVICE
void
store_kept(StoreD& store, Crd const& crd_D, TRrD const& tRrD, TRsD const& tRsD, int part)
{
  store.acquire(part);
  CUTE_UNROLL
  for (int i = 0; i < size<1>(tRsD); ++i) {
    copy_all(StageD{}, recast<ElementD>(tRrD(_,i,part)), tRsD(_,i,store.buffer));
  }
  store.commit(crd_D, part);
}

// Stores all slices of the last tile. The mainloop has ended, so slices without a buffer reuse the stages of this warpgroup's rows
// of A.
template <bool TmaStore, class Crd, class TRrD, class SD>
CUTE_DEVICE
void
store_last(Params const& params, Crd const& crd_D, TRrD const& tRrD, SD const& sD)
{
  Tensor sDA = make_tensor(sD.data(), SmemDA{});                                               // (PART_M,PART_N,BUFFERS+LENT)
  Store<TmaStore, decltype(sDA)> store{params, sDA, 0};
  Tensor tRsD = store.staged(threadIdx.x % size(Mma{}));                                       // (CPY,CPY_PART,BUFFERS+LENT)
  if constexpr (!store.whole) {
    if (threadIdx.x % 128 == 0) {
      tma_store_wait<0>();  // buffers are used from the first on, and the first is not the oldest one in flight
    }
  }
  CUTE_UNROLL
  for (int part = 0; part < parts; ++part) {
    store_kept(store, crd_D, tRrD, tRsD, part);
  }
}
