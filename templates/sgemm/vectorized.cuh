{% include "sgemm/head.cuh" %}
{% include "copy_all_if.cuh" %}

{% include "sgemm/copy_inside.cuh" %}

{% include "sgemm/mma.cuh" %}
{% for f in c.factors %}{% let x = f.tile.name -%}
using Store[[ x ]] = AutoVectorizingCopyWithAssumedAlignment<[[ f.store_bits ]]>;  // registers to s[[ x ]]
{% endfor %}
CUTE_DEVICE
void
kernel([[ c.plan.name() ]]_params const& params)
{
{% include "sgemm/tiles.cuh" %}

  //
  // Partition: this thread's share of the copies, through registers, and of the products
  //

  auto const thr_copy_a = CopyA{}.get_slice(threadIdx.x);
  Tensor tAgA = thr_copy_a.partition_S(gA);   // (CPY,CPY_M,CPY_K,k)
  Tensor tAcA = thr_copy_a.partition_S(cA);   // (CPY,CPY_M,CPY_K,k) -> (m,k)
  Tensor tAsA = thr_copy_a.partition_D(sA);   // (CPY,CPY_M,CPY_K)
  Tensor tArA = make_fragment_like(tAsA);     // (CPY,CPY_M,CPY_K)

  auto const thr_copy_b = CopyB{}.get_slice(threadIdx.x);
  Tensor tBgB = thr_copy_b.partition_S(gB);   // (CPY,CPY_N,CPY_K,k)
  Tensor tBcB = thr_copy_b.partition_S(cB);   // (CPY,CPY_N,CPY_K,k) -> (n,k)
  Tensor tBsB = thr_copy_b.partition_D(sB);   // (CPY,CPY_N,CPY_K)
  Tensor tBrB = make_fragment_like(tBsB);     // (CPY,CPY_N,CPY_K)

  Mma const mma;
  auto const thr_mma = mma.get_slice(threadIdx.x);
  Tensor tCsA = thr_mma.partition_A(sA);              // (MMA,MMA_M,BK)
  Tensor tCsB = thr_mma.partition_B(sB);              // (MMA,MMA_N,BK)
  Tensor tCrA = make_fragment_like(tCsA);             // (MMA,MMA_M,BK)
  Tensor tCrB = make_fragment_like(tCsB);             // (MMA,MMA_N,BK)
  Tensor tCrC = partition_fragment_C(mma, TileD{});   // (MMA,MMA_M,MMA_N)
  clear(tCrC);

  //
  // Main loop: the next tile along K comes from global memory while this one is computed
  //

  auto const main_loop = [&](auto const& load) {
    if (size<2>(gA) > 0) {
      load(0);
    }
    for (int k_tile = 0; k_tile < size<2>(gA); ++k_tile) {
      __syncthreads();  // the tiles were read before they are overwritten
      copy_all(StoreA{}, tArA, tAsA);
      copy_all(StoreB{}, tBrB, tBsB);
      __syncthreads();  // the tiles are whole before they are read
      if (k_tile + 1 < size<2>(gA)) {
        load(k_tile + 1);
      }

      CUTE_UNROLL
      for (int k = 0; k < size<2>(tCsA); ++k) {
        copy_all(LoadA{}, tCsA(_,_,k), tCrA(_,_,k));
        copy_all(LoadB{}, tCsB(_,_,k), tCrB(_,_,k));
        gemm(mma, tCrA(_,_,k), tCrB(_,_,k), tCrC);
      }
    }
  };

  // A tile is whole if its last element lies inside of the matrix. If the last tile along K is whole, all are.
  auto const whole_A = [&](int k_tile) {
    return {% for told in c.told(0) %}[[ told ]] && {% endfor %}elem_less(cA(size<0>(cA) - 1, size<1>(cA) - 1, k_tile), shape(mA));
  };
  auto const whole_B = [&](int k_tile) {
    return {% for told in c.told(1) %}[[ told ]] && {% endfor %}elem_less(cB(size<0>(cB) - 1, size<1>(cB) - 1, k_tile), shape(mB));
  };
  if (whole_A(size<2>(gA) - 1) && whole_B(size<2>(gA) - 1)) {
    main_loop([&](int k_tile) {
      copy_all(CopyA{}, tAgA(_,_,_,k_tile), tArA);
      copy_all(CopyB{}, tBgB(_,_,_,k_tile), tBrB);
    });
  } else {
    main_loop([&](int k_tile) {
      if (whole_A(k_tile)) {
        copy_all(CopyA{}, tAgA(_,_,_,k_tile), tArA);
      } else {
        copy_inside(tAgA(_,_,_,k_tile), tAcA(_,_,_,k_tile), shape(mA), tArA);
      }
      if (whole_B(k_tile)) {
        copy_all(CopyB{}, tBgB(_,_,_,k_tile), tBrB);
      } else {
        copy_inside(tBgB(_,_,_,k_tile), tBcB(_,_,_,k_tile), shape(mB), tBrB);
      }
    });
  }

{% include "sgemm/epilogue_vectors.cuh" %}
}

}  // namespace [[ c.plan.name() ]]
}  // namespace cutemplate
