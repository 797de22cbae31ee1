[[ c.banner ]]
//
// SGEMM, [[ what ]]: A is (M,K[[ c.l ]]), B is (K,N[[ c.l ]]), here as (N,K[[ c.l ]]), D is (M,N[[ c.l ]]).
// Launch: [[ c.plan.threads() ]] threads, [[ c.blocks_doc ]] blocks, [[ c.plan.smem().0 ]] bytes of dynamic shared memory.
{% include "sgemm/head.cuh" %}
{% include "sgemm/mma.cuh" %}
struct SharedStorage {
  alignas(16) float a[cosize_v<SmemA>];
  alignas(16) float b[cosize_v<SmemB>];
};
static_assert(sizeof(SharedStorage) == [[ c.plan.smem().0 ]], "bytes of dynamic shared memory");

{% include "sgemm/copy_edges.cuh" %}
CUTE_DEVICE
void
kernel([[ c.plan.name() ]]_params const& params)
{
{% include "sgemm/tiles.cuh" %}
  extern __shared__ __align__(16) unsigned char smem[];
  auto& shared = *reinterpret_cast<SharedStorage*>(smem);
  Tensor sA = make_tensor(make_smem_ptr(shared.a), SmemA{});  // (BM,BK,STAGES)
  Tensor sB = make_tensor(make_smem_ptr(shared.b), SmemB{});  // (BN,BK,STAGES)

  //
  // Partition: what this thread copies, and what it computes
  //

  CopyA const copy_a;
  auto const thr_copy_a = copy_a.get_slice(threadIdx.x);
  Tensor tAgA = thr_copy_a.partition_S(gA);  // (CPY,CPY_M,CPY_K,k)
  Tensor tAsA = thr_copy_a.partition_D(sA);  // (CPY,CPY_M,CPY_K,STAGES)

  CopyB const copy_b;
  auto const thr_copy_b = copy_b.get_slice(threadIdx.x);
  Tensor tBgB = thr_copy_b.partition_S(gB);  // (CPY,CPY_N,CPY_K,k)
  Tensor tBsB = thr_copy_b.partition_D(sB);  // (CPY,CPY_N,CPY_K,STAGES)

  Mma const mma;
  auto const thr_mma = mma.get_slice(threadIdx.x);
  Tensor tCsA = thr_mma.partition_A(sA);                                                   // (MMA,MMA_M,BK,STAGES)
  Tensor tCsB = thr_mma.partition_B(sB);                                                   // (MMA,MMA_N,BK,STAGES)
  Tensor tCrA = make_tensor<float>(make_shape(size<0>(tCsA), size<1>(tCsA), _2{}));        // (MMA,MMA_M,BUFFERS)
  Tensor tCrB = make_tensor<float>(make_shape(size<0>(tCsB), size<1>(tCsB), _2{}));        // (MMA,MMA_N,BUFFERS)
  Tensor tCrC = partition_fragment_C(mma, TileD{});                                        // (MMA,MMA_M,MMA_N)
  clear(tCrC);

{% if c.split > 1 %}  int const k_tiles_split = ceil_div(size<2>(gA), _[[ c.split ]]{});
  int const k_tile_begin = cute::min(split * k_tiles_split, int(size<2>(gA)));
  int const k_tile_end = cute::min(k_tile_begin + k_tiles_split, int(size<2>(gA)));
{% else if c.wave %}  int const k_tile_begin = is_cut ? part * params.k_part : 0;
  int const k_tile_end = is_cut ? cute::min(k_tile_begin + params.k_part, int(size<2>(gA))) : int(size<2>(gA));
{% else %}  int const k_tile_begin = 0;
  int const k_tile_end = size<2>(gA);
{% endif %}
  //
  // Main loop: columns of sA and sB are in registers one k ahead, tiles in shared memory [[ t.stages - 1 ]] ahead
  //

  auto const next = [](int stage) { return stage + 1 == size<2>(SmemA{}) ? 0 : stage + 1; };
  auto const main_loop = [&](auto const& load) {
    CUTE_UNROLL
    for (int stage = 0; stage < size<2>(SmemA{}) - 1; ++stage) {
      if (k_tile_begin + stage < k_tile_end) {
        load(k_tile_begin + stage, stage);
      }
      cp_async_fence();
    }
    int read = 0;
    int write = size<2>(SmemA{}) - 1;
    cp_async_wait<size<2>(SmemA{}) - 2>();
    __syncthreads();  // the first tiles of all threads are there
    copy(tCsB(_,_,0,read), tCrB(_,_,0));
    copy(tCsA(_,_,0,read), tCrA(_,_,0));

    CUTE_NO_UNROLL
    for (int k_tile = k_tile_begin; k_tile < k_tile_end; ++k_tile) {
      CUTE_UNROLL
      for (int k = 0; k < size<2>(tCsA); ++k) {
        int const k_next = (k + 1) % size<2>(tCsA);
        if (k_next == 0) {
          cp_async_wait<size<2>(SmemA{}) - 2>();
          __syncthreads();  // the next tiles of all threads are there, and this one was read by all
          read = k_tile + 1 < k_tile_end ? next(read) : read;  // past the last tile there is none to read
        }
        copy(tCsB(_,_,k_next,read), tCrB(_,_,(k + 1) % 2));
        copy(tCsA(_,_,k_next,read), tCrA(_,_,(k + 1) % 2));
        if (k == 0) {
          if (k_tile + size<2>(SmemA{}) - 1 < k_tile_end) {
            load(k_tile + size<2>(SmemA{}) - 1, write);
          }
          cp_async_fence();
          write = next(write);
        }
{% if t.warp_sync %}        __syncwarp();  // keeps the compiler from moving these loads to their use
{% endif %}        gemm(mma, tCrA(_,_,k % 2), tCrB(_,_,k % 2), tCrC);
      }
    }
    cp_async_wait<0>();
  };

{% for e in t.edges %}{% if e.vec > 1 %}  bool const vectors_[[ e.matrix ]] = params.[[ e.aligned ]] && size<0>(m[[ e.matrix ]]) % [[ e.vec ]] == 0;  // then none lies across the edge
{% endif %}{% endfor %}{% include "sgemm/whole.cuh" %}
  if (k_tile_begin == k_tile_end) {
    // Nothing to add.
  } else if (whole_A(k_tile_end - 1) && whole_B(k_tile_end - 1)) {
    main_loop([&](int k_tile, int stage) {
      copy(copy_a, tAgA(_,_,_,k_tile), tAsA(_,_,_,stage));
      copy(copy_b, tBgB(_,_,_,k_tile), tBsB(_,_,_,stage));
    });
  } else {
    main_loop([&](int k_tile, int stage) {
      if (whole_A(k_tile)) {
        copy(copy_a, tAgA(_,_,_,k_tile), tAsA(_,_,_,stage));
{% for e in t.edges %}{% if e.matrix == "A" %}      } else [[ e.condition() ]]{
        copy_inside([[ e.name ]]{}, gA(_,_,k_tile), cA(_,_,k_tile), shape(mA), sA(_,_,stage));
{% endif %}{% endfor %}      }
      if (whole_B(k_tile)) {
        copy(copy_b, tBgB(_,_,_,k_tile), tBsB(_,_,_,stage));
{% for e in t.edges %}{% if e.matrix == "B" %}      } else [[ e.condition() ]]{
        copy_inside([[ e.name ]]{}, gB(_,_,k_tile), cB(_,_,k_tile), shape(mB), sB(_,_,stage));
{% endif %}{% endfor %}      }
    });
  }

{% if c.wave %}{% include "sgemm/sums.cuh" %}
{% endif %}{% include "sgemm/epilogue_vectors.cuh" %}
}
{% if c.split > 1 %}
{% include "sgemm/reduce.cuh" %}
{% else if c.wave %}
{% include "sgemm/reduce_tiles.cuh" %}
{% endif %}
}  // namespace [[ c.plan.name() ]]
}  // namespace cutemplate
