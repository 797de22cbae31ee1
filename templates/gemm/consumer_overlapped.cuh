// The mainloop overlaps, one slice for each of a tile's first k-tiles, first with the stores of the tile before, if it was kept in
// registers, then with the prefetch of this tile's epilogue inputs, which reuse the registers of a kept tile.
template <bool TmaStore, class SA, class SB, class SD, class Team>
CUTE_DEVICE
void
consume(Params const& params, Scheduler tiles, SA const& sA, SB const& sB, SD const& sD, Barriers& barriers, Team team)
{
  auto const thr_mma = Mma{}.get_slice(threadIdx.x % size(Mma{}));
  Tensor tCrA = thr_mma.make_fragment_A(thr_mma.partition_A(sA));                              // (MMA,MMA_M,MMA_K,STAGES)
  Tensor tCrB = thr_mma.make_fragment_B(thr_mma.partition_B(sB));                              // (MMA,MMA_N,MMA_K,STAGES)
  decltype(partition_fragment_C(Mma{}, TileD{})) tCrC;                                         // (MMA,MMA_M,MMA_N)
{%- if !c.streams_k() %}
  int const k_tiles = tiles.k_tiles(ceil_div(params.k, size<1>(TileA{})));
{%- endif %}
  Release const release(tiles);
  PipeState pipe;
  Store<TmaStore, SD> store{params, sD, 0};
  constexpr int stores = [[ r.keeps() ]] ? parts : 0;
  constexpr int pieces = [[ r.keeps() ]] ? copies : 1;
  using Word = Int<[[ r.words ]] / pieces>;
  Tensor tRrD = make_tensor<uint32_t>(make_shape(Word{}, Int<pieces>{}, Int<parts>{}));        // (WORD,CPY_PART,PARTS)
  Tensor tRrW = group_modes<0,2>(make_tensor(tRrD.data(), tRrD.layout()));                     // (WORD,PARTS)
  int done = stores;  // slices stored, plus slices prefetched
{%- if r.keeps() %}
  decltype(tiles.crd()) crd_kept{};                                                            // (m,n[[ c.modes_l() ]])
  auto const keep = [&](int part, int i, auto const& of_D) {
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
{%- endif %}
  cudaGridDependencySynchronize();  // PDL: the kernel before this one has finished
  for (; tiles.has_tile(); tiles.advance()) {
    auto const crd_D = tiles.crd();                                                            // (m,n[[ c.modes_l() ]])
{%- if !r.ahead.is_empty() %}
    static_assert(size<0>(tRrW) >= [[ r.words_ahead() ]], "registers for the words of a slice");
    auto const read_next = [&] {
      for_each(make_int_sequence<parts>{}, [&](auto part) {
        if (part == done - stores) {
          read_ahead(params, crd_D, part, tRrW(_,part));
        }
      });
      ++done;
    };
{%- endif %}
    auto const meanwhile = [&] {
{%- if r.keeps() %}
      if (TmaStore && done < stores) {
        store_next(_0{});
        return;
      }
{%- endif %}
{%- if !r.ahead.is_empty() %}
      if (TmaStore && done < stores + parts) {
{%- if c.streams_k() %}
        if (tiles.is_shared()) {
          return;  // `reduce` reads its inputs
        }
{%- endif %}
        read_next();
      }
{%- endif %}
    };
{%- if c.streams_k() %}
    int const k_tiles = tiles.k_tiles();
    // Else two paths define the accumulators, and ptxas moves them before WGMMA has ended (C7514).
    __builtin_assume(!TmaStore || k_tiles > 0);
{%- endif %}
    multiply<TmaStore>(k_tiles, tCrA, tCrB, tCrC, barriers, pipe, release, team, meanwhile);
{%- if r.keeps() %}
    while (TmaStore && done < stores) {
      store_next(_1{});  // the first k-tile has stored slice 0
    }
{%- endif %}
{%- if c.streams_k() %}
    if (tiles.is_shared()) {
      give_sums(params, tiles, tCrC);
      done = stores;
      continue;
    }
{%- endif %}
{%- if !r.ahead.is_empty() %}
    while (TmaStore && done < stores + parts) {
      read_next();  // slices that no k-tile was left for
    }
{%- endif %}
    done = 0;
{%- if r.keeps() %}
    if constexpr (TmaStore) {
      round_tile<TmaStore>(params, crd_D, 0, tCrC, tRrW, [](int) {}, keep, [](int) {});
      crd_kept = crd_D;
      continue;
    }
{%- endif %}
    auto const tRsD = store.staged();                                                          // (CPY,CPY_PART,BUFFERS)
    round_tile<TmaStore>(params, crd_D, 0, tCrC, tRrW,
      [&](int part) { store.acquire(part); },
      [&](int, int i, auto const&... of) { store.write(tRsD, i, of...); },
      [&](int part) { store.commit(crd_D, part); });
  }
{%- if r.keeps() %}
  if (TmaStore && done == 0) {
    store_last<TmaStore>(params, crd_kept, tRrD, sD);
  }
{%- endif %}
  if constexpr (TmaStore) {
    if (threadIdx.x % 128 == 0) {
      tma_store_wait<0>();  // TMA must have read shared memory before the CTA exits
    }
  }
}
