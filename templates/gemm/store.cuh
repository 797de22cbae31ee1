// Stores slices of D, or of D and E, through shared memory. One slice is written while another is stored.
// With a buffer for each slice, all are stored together.
template <bool TmaStore, class SD>
struct Store {
  Params const& params;
  SD const& sD;                                                                                // (PART_M,PART_N,BUFFERS)
  int rank_k;
  int buffer = 0;

  static constexpr int buffers = decltype(size<2>(SD{}))::value / outputs;
  static constexpr bool whole  = parts <= buffers;

  // Barrier of the threads that store a slice together: a warpgroup, or all threads of the tile.
  CUTE_DEVICE
  static void
  sync()
  {
    constexpr int together = [[ c.stores_apart() ]] ? 128 : size(Mma{});
    cutlass::arch::NamedBarrier::sync(together, together == consumers ? 0 : threadIdx.x / together);
  }

  // The outputs of a slice lie side by side: their place in sD.
  CUTE_DEVICE
  int
  place(int output) const
  {
    return outputs * buffer + output;
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

  // Where a thread writes a tile. With two outputs it is computed anew for each copy, which saves registers.
  CUTE_DEVICE
  auto
  staged() const
  {
    if constexpr (outputs > 1) {
      return _0{};
    } else {
      return staged(threadIdx.x % size(Mma{}));                                                // (CPY,CPY_PART,BUFFERS)
    }
  }

  // Writes a copy's elements of D, and of E.
  template <class TRsD, class... Of>
  CUTE_DEVICE
  void
  write(TRsD const& tRsD, int i, Of const&... of) const
  {
    if constexpr (outputs > 1) {
      Tensor again = staged(anew(threadIdx.x % size(Mma{})));                                  // (CPY,CPY_PART,BUFFERS)
      int output = 0;
      (copy_all(StageD{}, of, again(_,i,place(output++))), ...);
    } else {
      (copy_all(StageD{}, of, tRsD(_,i,buffer)), ...);
    }
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
      auto const crd = crd_of_part(crd_D, rank_k, written);
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

{%- match c.scatters() %}
{%- when true %}
{% include "gemm/store_rows.cuh" %}
{%- when false %}
{%- match c.grouped() %}
{%- when true %}
{% include "gemm/store_group.cuh" %}
{%- when false %}
{% include "gemm/store_tma.cuh" %}
{%- endmatch %}
{% include "gemm/store_elements.cuh" %}
{%- endmatch %}
};
