{% include "sgemm/head.cuh" %}
{% include "sgemm/mma.cuh" %}
struct SharedStorage {
{% for f in c.factors %}  alignas([[ f.tile.align.0 ]]) float [[ f.param ]][cosize_v<Smem[[ f.tile.name ]]>];
{% endfor %}};
static_assert(sizeof(SharedStorage) == [[ c.plan.smem().0 ]], "bytes of dynamic shared memory");
static_assert(alignof(SharedStorage) == [[ c.alignment() ]], "as it is declared");
{% for f in c.factors %}static_assert(offsetof(SharedStorage, [[ f.param ]]) % [[ f.tile.align.0 ]] == 0, "s[[ f.tile.name ]] begins at a multiple of its widest access");
{% endfor %}{% for f in c.factors %}static_assert(Copy[[ f.tile.name ]]::TiledLayout_TV{}(0, [[ f.vec ]] - 1) == [[ f.vec ]] - 1, "vectors of [[ f.tile.name ]] lie along [[ f.mode ]], as their predicates do");
{% endfor %}static_assert(size<2>(SmemA{}) >= 2 && size<2>(SmemA{}) == size<2>(SmemB{}), "one stage is written while another is read");
static_assert(size<1>(TileA{}) % 2 == 0, "columns are in two sets of registers by turns, from tile to tile");

{% include "copy_all_if.cuh" %}
{% include "sgemm/copy_residue.cuh" %}
CUTE_DEVICE
void
kernel([[ c.plan.name() ]]_params const& params)
{
{% include "sgemm/tensors.cuh" %}
  //
  // Tiles of this CTA, in global and in shared memory. A and B are shifted along K, so that the first k-tile holds the residue.
  //

  int const residue_k = params.k - size<1>(TileA{}) * ceil_div(params.k, size<1>(TileA{}));  // in (-BK,0]
  Tensor gA = local_tile(domain_offset(make_coord(0, residue_k), mA), TileA{}, make_coord(tile_m, _));  // (BM,BK,k)
  Tensor gB = local_tile(domain_offset(make_coord(0, residue_k), mB), TileB{}, make_coord(tile_n, _));  // (BN,BK,k)
{% include "sgemm/tiles_d.cuh" %}
  extern __shared__ __align__([[ c.alignment() ]]) unsigned char smem[];
  auto& shared = *reinterpret_cast<SharedStorage*>(smem);
  Tensor sA = make_tensor(make_smem_ptr(shared.a), SmemA{});  // (BM,BK,STAGES)
  Tensor sB = make_tensor(make_smem_ptr(shared.b), SmemB{});  // (BN,BK,STAGES)

  //
  // Partition: this thread's share of the copies and of the products
  //

  CopyA const copy_a;
  auto const thr_copy_a = copy_a.get_slice(threadIdx.x);
  Tensor tAgA = group_modes<1,3>(thr_copy_a.partition_S(gA));  // (CPY,COPIES_A,k)
  Tensor tAsA = group_modes<1,3>(thr_copy_a.partition_D(sA));  // (CPY,COPIES_A,STAGES)

  CopyB const copy_b;
  auto const thr_copy_b = copy_b.get_slice(threadIdx.x);
  Tensor tBgB = group_modes<1,3>(thr_copy_b.partition_S(gB));  // (CPY,COPIES_B,k)
  Tensor tBsB = group_modes<1,3>(thr_copy_b.partition_D(sB));  // (CPY,COPIES_B,STAGES)

  Mma const mma;
  auto const thr_mma = mma.get_slice(threadIdx.x);
  Tensor tCsA = thr_mma.partition_A(sA);                                                   // (MMA,MMA_M,BK,STAGES)
  Tensor tCsB = thr_mma.partition_B(sB);                                                   // (MMA,MMA_N,BK,STAGES)
  Tensor tCrA = make_tensor<float>(make_shape(size<0>(tCsA), size<1>(tCsA), _2{}));        // (MMA,MMA_M,BUFFERS)
  Tensor tCrB = make_tensor<float>(make_shape(size<0>(tCsB), size<1>(tCsB), _2{}));        // (MMA,MMA_N,BUFFERS)
  Tensor tCrC = partition_fragment_C(mma, TileD{});                                        // (MMA,MMA_M,MMA_N)
  clear(tCrC);

{% if c.d.recipe.split_k > 1 %}  int const k_tiles_split = ceil_div(size<2>(gA), Int<[[ c.d.recipe.split_k ]]>{});
  int const k_tile_begin = cute::min(split * k_tiles_split, int(size<2>(gA)));
  int const k_tile_end = cute::min(k_tile_begin + k_tiles_split, int(size<2>(gA)));
{% else if c.d.recipe.wave > 0 %}  int const k_tile_begin = is_cut ? part * params.k_part : 0;
  int const k_tile_end = is_cut ? cute::min(k_tile_begin + params.k_part, int(size<2>(gA))) : int(size<2>(gA));
{% else %}  int const k_tile_begin = 0;
  int const k_tile_end = size<2>(gA);
{% endif %}
  //
  // Mainloop: registers hold the columns of sA and sB one k ahead, shared memory holds tiles [[ c.d.stages() - 1 ]] ahead
  //

  auto const next = [](int stage) { return stage + 1 == size<2>(SmemA{}) ? 0 : stage + 1; };
  auto const main_loop = [&](auto const& load) {
    CUTE_UNROLL
    for (int stage = 1; stage < size<2>(SmemA{}) - 1; ++stage) {
      CUTE_UNROLL
      for (int k = 0; k < size<2>(tCsA); ++k) {
        load(k_tile_begin + stage, k, stage);
      }
      cp_async_fence();
    }
    int read = 0;
    int write = size<2>(SmemA{}) - 1;
    cp_async_wait<size<2>(SmemA{}) - 2>();
    __syncthreads();  // all threads' copies of the first tiles have arrived
    copy_all(LoadB{}, tCsB(_,_,0,read), tCrB(_,_,0));
    copy_all(LoadA{}, tCsA(_,_,0,read), tCrA(_,_,0));

    CUTE_NO_UNROLL
    for (int k_tile = k_tile_begin; k_tile < k_tile_end; ++k_tile) {
      CUTE_UNROLL
      for (int k = 0; k < size<2>(tCsA); ++k) {
        int const k_next = (k + 1) % size<2>(tCsA);
        if (k_next == 0) {
          cp_async_fence();
          write = next(write);
          cp_async_wait<size<2>(SmemA{}) - 2>();
          __syncthreads();  // all copies of the next tiles have arrived, and all threads have read this one
          read = k_tile + 1 < k_tile_end ? next(read) : read;  // after the last tile there is nothing to read
        }
        copy_all(LoadB{}, tCsB(_,_,k_next,read), tCrB(_,_,(k + 1) % 2));
        load(k_tile + size<2>(SmemA{}) - 1, k, write);
        copy_all(LoadA{}, tCsA(_,_,k_next,read), tCrA(_,_,(k + 1) % 2));
{% if c.d.recipe.warp_sync %}        __syncwarp();  // keeps the compiler from moving these loads to their use
{% endif %}        gemm(mma, tCrA(_,_,k % 2), tCrB(_,_,k % 2), tCrC);
      }
    }
    cp_async_wait<0>();
  };

  // Spreads a tile's copies over the first half of its k, to issue them between products. This issues the copies of one k.
  auto const spread = [](auto copies, int k, auto const& copy_one) {
    constexpr int each = ceil_div(decltype(copies)::value, int(size<1>(TileA{})) / 2);
    CUTE_UNROLL
    for (int i = k * each; i < (k + 1) * each && i < copies; ++i) {
      copy_one(i);
    }
  };

  if (k_tile_begin < k_tile_end) {
{% include "sgemm/predicates.cuh" %}
    // A CTA runs one of two loops, for whole tiles or with predicates; switching between them would stall instruction fetch. The loop
    // for whole tiles copies the last k-tile again instead of branching, so that k-tile must have no residue.
    if (params.m % size<0>(TileD{}) == 0 && params.n % size<1>(TileD{}) == 0 && (residue_k == 0 || k_tile_end > 1){% for f in c.factors %}{% if f.vec > 1 %} && [[ f.is_vector() ]]{% endif %}{% endfor %}) {
      main_loop([&](int k_tile, int k, int stage) {
        int const k_tile_in = cute::min(k_tile, k_tile_end - 1);
{% for f in c.factors %}{% let x = f.tile.name %}        spread(size<1>(t[[ x ]]s[[ x ]]), k, [&](int i) { copy_all(copy_[[ f.param ]], t[[ x ]]g[[ x ]](_,i,k_tile_in), t[[ x ]]s[[ x ]](_,i,stage)); });
{% endfor %}      });
    } else {
      main_loop([&](int k_tile, int k, int stage) {
        if (k == 0 && k_tile >= k_tile_end) {
          clear(tApA);
          clear(tBpB);
        }
{% for f in c.factors %}{% let x = f.tile.name %}        spread(size<1>(t[[ x ]]s[[ x ]]), k, [&](int i) { copy_residue(copy_[[ f.param ]], [[ f.is_vector() ]], t[[ x ]]p[[ x ]](i), t[[ x ]]g[[ x ]](_,i,k_tile), t[[ x ]]s[[ x ]](_,i,stage)); });
{% endfor %}      });
    }
  }

{% if c.d.recipe.wave > 0 %}{% include "sgemm/sums.cuh" %}
{% endif %}{% include "sgemm/epilogue_vectors.cuh" %}
}
{% if c.d.recipe.split_k > 1 %}
{% include "sgemm/reduce.cuh" %}
{% else if c.d.recipe.wave > 0 %}
{% include "sgemm/reduce_tiles.cuh" %}
{% endif %}
}  // namespace [[ c.plan.name() ]]
}  // namespace cutemplate
