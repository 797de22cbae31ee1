// Stores slices of D{% if c.has_e() %} and E{% endif %} through shared memory. One slice is written while another is stored.
// With a buffer for each slice, all are stored together.
template <bool TmaStore, class SD>
struct Store {
  [[ c.plan.name() ]]_params const& params;
  SD const& sD;                                                                                // (PART_M,PART_N,BUFFERS)
{% if c.splits() > 1 %}  int rank_k;
{% endif %}  int buffer = 0;

  static constexpr int buffers = decltype(size<2>(SD{}))::value{% if c.has_e() %} / outputs{% endif %};
  static constexpr bool whole  = parts <= buffers;

  // Barrier of the threads that store a slice together: a warpgroup, or all threads of the tile.
  CUTE_DEVICE
  static void
  sync()
  {
    constexpr int together = TmaStore ? 128 : size(Mma{});
    cutlass::arch::NamedBarrier::sync(together, together == consumers ? 0 : threadIdx.x / together);
  }

  // Where a thread writes its elements of a slice.
  CUTE_DEVICE
  auto
  staged(int thread) const
  {
    Tensor part = as_position_independent_swizzle_tensor(sD(_,_,_0{}));                        // (PART_M,PART_N)
    Tensor tDsD = group_modes<1,3>(partition_D(StageD{}, thread, part));                       // (CPY,CPY_PART)
    return make_tensor(tDsD.data(), append(tDsD.layout(), layout<2>(sD)));                    // (CPY,CPY_PART,BUFFERS)
  }

  // Waits until the slice's buffer has been read; with a buffer for each slice, waits for all of them before the first slice.
  CUTE_DEVICE
  void
  acquire(int part)
  {
    if constexpr (whole || parts % buffers == 0) {
      buffer = part % buffers;
    }
    if (!whole || part == 0) {
      if (TmaStore && threadIdx.x % 128 == 0) {
        tma_store_wait<whole ? 0 : buffers - 1>();
      }
      sync();
    }
  }

  // Stores the slice that all threads have written; with a buffer for each slice, stores all of them after the last.
  template <class Crd>
  CUTE_DEVICE
  void
  commit(Crd const& crd_D, int part)
  {
    if (whole && part + 1 < parts) {
      return;
    }
    if constexpr (TmaStore) {
      tma_store_fence();
    }
    sync();
    CUTE_UNROLL
    for (int written = whole ? 0 : part; written <= part; ++written) {
      auto const crd = crd_of_part(crd_D, written{% if c.splits() > 1 %}, rank_k{% endif %});
      if constexpr (whole) {
        buffer = written;
      }
      if constexpr (TmaStore) {
        store_by_tma(crd);
      } else {
        store_elements(crd);
      }
    }
    buffer = buffer + 1 == buffers ? 0 : buffer + 1;
  }

  // Each warpgroup stores its own rows.
  template <class Crd>
  CUTE_DEVICE
  void
  store_by_tma(Crd const& crd) const
  {
    int const warpgroup = threadIdx.x % size(Mma{}) / 128;
    Tensor mD = TmaD{}.get_tma_tensor(make_shape(params.m, params.n{% if c.batched() %}, params.l{% endif %}));  // (M,N{% if c.batched() %},L{% endif %}) -> TMA coordinate
    Tensor gD = local_tile(mD, PartD{}, make_coord(_, _));                                     // (PART_M,PART_N,m,n[[ c.modes_l() ]])
    auto const parts = tma_partition(TmaD{}, warpgroup, Layout<Int<size(Mma{}) / 128>>{}, group_modes<0,2>(sD), group_modes<0,2>(gD));
    Tensor tDgD = get<0>(parts);                                                               // (TMA,m,n[[ c.modes_l() ]])
    Tensor tDsD = get<1>(parts);                                                               // (TMA,BUFFERS)
    if (threadIdx.x % 128 == 0) {
      auto const at = tDgD(_0{},get<0>(crd),get<1>(crd){% if c.batched() %},get<2>(crd){% endif %});
      // PTX, because CuTe's TMA store has no L2 hint.
      auto const hint = static_cast<uint64_t>(params.passes_l2 ? TMA::CacheHintSm90::EVICT_FIRST : TMA::CacheHintSm90::EVICT_NORMAL);
      auto const store = [&](CUtensorMap const& map, int from) {
        asm volatile("cp.async.bulk.tensor.{% if c.batched() %}3{% else %}2{% endif %}d.global.shared::cta.bulk_group.L2::cache_hint [%0, {" "%2, %3{% if c.batched() %}, %5{% endif %}}], [%1], %4;"
                     :: "l"(&map), "r"(cast_smem_ptr_to_uint(raw_pointer_cast(tDsD(_,from).data()))),
                        "r"(int32_t(get<0>(at))), "r"(int32_t(get<1>(at))), "l"(hint){% if c.batched() %}, "r"(int32_t(get<2>(at))){% endif %} : "memory");
      };
{% for t in c.written() %}      store(params.map_[[ t.is.param ]], [[ c.buffer_of(t) ]]);
{% endfor %}      tma_store_arrive();
    }
  }

  // Stores element by element, so D may have any alignment.
  template <class Crd>
  CUTE_DEVICE
  void
  store_elements(Crd const& crd_part) const
  {
{% if c.batched() %}    int const l = get<2>(crd_part);
{% endif %}{% for t in c.written() %}{% include "tensor.cuh" %}{% if c.batched() %}(_,_,l){% endif %};  // [[ t.modes ]]
{% endfor %}    int const thread = anew(threadIdx.x % size(Mma{}));
    if (thread >= size(CopyD{})) {
      return;
    }
    auto const crd = take<0,2>(crd_part);
    auto const thr_copy = CopyD{}.get_slice(thread);
    Tensor tDcD = thr_copy.partition_D(make_identity_tensor(PartD{}));                         // (CPY,CPY_M,CPY_N) -> (m,n) in the slice
    auto const residue = make_coord(params.m - get<0>(crd) * size<0>(PartD{}), params.n - get<1>(crd) * size<1>(PartD{}));
    auto const store = [&](auto const& matrix, int from) {
      Tensor sP = as_position_independent_swizzle_tensor(sD(_,_,from));                        // (PART_M,PART_N)
      Tensor tDsD = partition_S(CopyD{}, thread, sP);                                          // (CPY,CPY_M,CPY_N)
      Tensor tDgD = thr_copy.partition_D(local_tile(matrix, PartD{}, crd));                    // (CPY,CPY_M,CPY_N)
      #pragma unroll {% if c.has_e() %}4{% else %}8{% endif %}  // bounds registers: accumulators of later slices are live
      for (int i = 0; i < size(tDsD); ++i) {
        if (elem_less(tDcD(i), residue)) {
          tDgD(i) = tDsD(i);
        }
      }
    };
{% for t in c.written() %}    store(m[[ t.is.name ]], [[ c.buffer_of(t) ]]);
{% endfor %}  }
};
