{% include "gemm/mainloop_wgmma.cuh" %}

template <bool TmaStore, class SA, class SB, class SD>
CUTE_DEVICE
void
consume([[ c.plan.name() ]]_params const& params, Scheduler tiles, SA const& sA, SB const& sB, SD const& sD, Barriers& barriers{% if teams > 1 %}, int team{% endif %}{% if c.splits() > 1 %}, float* sums{% endif %})
{
  auto const thr_mma = Mma{}.get_slice(threadIdx.x % size(Mma{}));
  Tensor tCrA = thr_mma.make_fragment_A(thr_mma.partition_A(sA));                              // (MMA,MMA_M,MMA_K,STAGES)
  Tensor tCrB = thr_mma.make_fragment_B(thr_mma.partition_B(sB));                              // (MMA,MMA_N,MMA_K,STAGES)
  decltype(partition_fragment_C(Mma{}, TileD{})) tCrC;                                         // (MMA,MMA_M,MMA_N)
{% if !c.streams_k() %}  int const k_tiles = {% if c.splits() > 1 %}tiles.k_tiles(ceil_div(params.k, size<1>(TileA{}))){% else %}ceil_div(params.k, size<1>(TileA{})){% endif %};
{% endif %}  Release const release(tiles);
  PipeState pipe;
{% if teams > 1 %}  Order order(team);
  tiles.advance(team);  // to this team's first tile
  pipe.advance(team * k_tiles);
{% endif %}{% if c.splits() > 1 %}  Sums add_up(tiles, barriers, sums);
{% endif %}  Store<TmaStore, SD> store{params, sD{% if c.splits() > 1 %}, tiles.rank_k{% endif %}};
{% if keeps %}  // Each of a tile's first k-tiles overlaps with the store of one slice of the tile before, kept in registers.
{% endif %}{% if ahead > 0 %}  // Each of {% if keeps %}its next{% else %}a tile's first{% endif %} k-tiles overlaps with the prefetch of one slice of the epilogue inputs into registers.
{% endif %}{% if has_meanwhile() -%}
{% if keeps %}  using Staged = decltype(shape(store.staged(0)));                                             // (CPY,CPY_PART,BUFFERS)
  using Word   = Int<sizeof(ElementD) * size<0>(Staged{}) / sizeof(uint32_t)>;
  Tensor tRrD = make_tensor<uint32_t>(make_shape(Word{}, size<1>(Staged{}), Int<parts>{}));    // (WORD,CPY_PART,PARTS)
{% if ahead > 0 %}  Tensor tRrW = group_modes<0,2>(make_tensor(tRrD.data(), tRrD.layout()));                     // (WORD,PARTS)
  static_assert(size<0>(tRrW) >= [[ ahead ]], "prefetched inputs reuse the registers of the kept tile");
{% endif %}  decltype(tiles.crd()) crd_kept{};                                                            // (m,n[[ c.modes_l() ]])
{% else %}  Tensor tRrW = make_tensor<uint32_t>(make_shape(Int<[[ ahead ]]>{}, Int<parts>{}));                    // (WORD,PARTS)
{% endif %}  constexpr int stores = {% if keeps %}parts{% else %}0{% endif %};
  int done = stores;  // slices stored{% if ahead > 0 %}, plus slices prefetched{% endif %}
{% if keeps %}  auto const keep = [&](int part, int i, auto const& of_D) {
    Tensor words = recast<uint32_t>(of_D);                                                     // (WORD)
    CUTE_UNROLL
    for (int word = 0; word < size(words); ++word) {
      tRrD(word,i,part) = words(word);
    }
  };
  auto const store_next = [&](auto first) {
    Tensor tRsD = store.staged(anew(threadIdx.x % size(Mma{})));                               // (CPY,CPY_PART,BUFFERS)
    for_each(make_int_range<first, parts>{}, [&](auto part) {
      if (part == done) {
        store_kept(store, crd_kept, tRrD, tRsD, part);
      }
    });
    ++done;
  };
{% endif %}{% endif %}  cudaGridDependencySynchronize();  // PDL: the kernel before this one has finished
  for (; tiles.has_tile(); tiles.advance({% if teams > 1 %}teams{% endif %})) {
    auto const crd_D = tiles.crd();                                                            // (m,n[[ c.modes_l() ]])
{% if ahead > 0 %}    auto const read_next = [&] {
      for_each(make_int_sequence<parts>{}, [&](auto part) {
        if (part == done - stores) {
          read_ahead(params, crd_D, part, tRrW(_,part));
        }
      });
      ++done;
    };
{% endif %}{% if has_meanwhile() %}    auto const meanwhile = [&] {
{% if keeps %}      if (TmaStore && done < stores) {
        store_next(_0{});
        return;
      }
{% endif %}{% if ahead > 0 %}      if (TmaStore && done < stores + parts{% if c.streams_k() %} && !tiles.is_shared(){% endif %}) {
        read_next();
      }
{% endif %}    };
{% endif %}{% if c.streams_k() %}    int const k_tiles = tiles.k_tiles();
    __builtin_assume(!TmaStore || k_tiles > 0);  // else two paths define the accumulators, and ptxas moves them before WGMMA has ended (C7514)
{% endif %}    multiply<TmaStore>(k_tiles, tCrA, tCrB, tCrC, barriers, pipe, release{% if teams > 1 %}, order{% endif %}{% if has_meanwhile() %}, meanwhile{% endif %});
{% if teams > 1 %}    pipe.advance((teams - 1) * k_tiles);
{% endif %}{% if c.splits() > 1 %}    add_up(tCrC);
{% endif %}{% if keeps %}    while (TmaStore && done < stores) {
      store_next(_1{});  // the first k-tile has stored slice 0
    }
{% endif %}{% if c.streams_k() %}    if (tiles.is_shared()) {
      give_sums(params, tiles, tCrC);
{% if ahead > 0 %}      done = stores;
{% endif %}      continue;
    }
{% endif %}{% if ahead > 0 %}    while (TmaStore && done < stores + parts) {
      read_next();  // slices that no k-tile was left for
    }
{% endif %}{% if has_meanwhile() %}    done = 0;
{% endif %}{% if keeps %}    if constexpr (TmaStore) {
      round_tile<TmaStore>(params, crd_D, tCrC, {% if ahead > 0 %}tRrW, {% endif %}[](int) {}, keep, [](int) {});
      crd_kept = crd_D;
      continue;
    }
{% endif %}{% if !c.has_e() %}    Tensor tRsD = store.staged(threadIdx.x % size(Mma{}));                                     // (CPY,CPY_PART,BUFFERS)
{% endif %}    round_tile<TmaStore>(params, crd_D, {% if c.splits() > 1 %}tiles.rank_k, {% endif %}tCrC,{% if ahead > 0 %} tRrW,{% endif %}
      [&](int part) { store.acquire(part); },
{% if c.has_e() %}      [&](int, int i, auto const& of_D, auto const& of_E) {
        Tensor tRsD = store.staged(anew(threadIdx.x % size(Mma{})));                           // (CPY,CPY_PART,BUFFERS)
        copy_all(StageD{}, of_D, tRsD(_,i,outputs * store.buffer));
        copy_all(StageD{}, of_E, tRsD(_,i,outputs * store.buffer + 1));
      },
{% else %}      [&](int, int i, auto const& of_D) { copy_all(StageD{}, of_D, tRsD(_,i,store.buffer)); },
{% endif %}      [&](int part) { store.commit(crd_D, part); });
  }
{% if keeps %}  if (TmaStore && done == 0) {
    store_last<TmaStore>(params, crd_kept, tRrD, sD);
  }
{% endif %}{% if c.splits() > 1 %}  add_up.wait_until_read();
{% endif %}  if constexpr (TmaStore) {
    if (threadIdx.x % 128 == 0) {
      tma_store_wait<0>();  // TMA must have read shared memory before the CTA exits
    }
  }
}
