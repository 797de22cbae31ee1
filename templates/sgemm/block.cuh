{% include "sgemm/head.cuh" %}
{% include "copy_all_if.cuh" %}

{% include "sgemm/copy_inside.cuh" %}

{% include "sgemm/types.cuh" %}using ThrA    = [[ thr[0] ]];  // (thr_m,thr_k) -> tid, copies A
using ThrB    = [[ thr[1] ]];  // (thr_n,thr_k) -> tid, copies B
using Single  = AutoVectorizingCopyWithAssumedAlignment<32>;  // to shared memory, from any address
using ThrC    = [[ thr_c ]];  // (thr_n,thr_m), threads numbered along N
using TileTC  = [[ tile_tc ]];  // (TM,TN), the elements of one thread

//
// Preconditions: every number that the plan computed
//

static_assert(size(ThrC{}) == [[ c.plan.threads() ]], "every thread computes");
static_assert(size(ThrA{}) == [[ c.plan.threads() ]] && size(ThrB{}) == [[ c.plan.threads() ]], "every thread copies");
static_assert(size(TileA{}) % size(ThrA{}) == 0 && size(TileB{}) % size(ThrB{}) == 0, "as many elements as any other");
static_assert(size(ThrC{}) * size(TileTC{}) == size(TileD{}), "thread tiles make the tile of the CTA");
{% for a in c.assertions %}static_assert([[ a.condition ]], "[[ a.what ]]");
{% endfor %}
CUTE_DEVICE
void
kernel([[ c.plan.name() ]]_params const& params)
{
{% include "sgemm/tiles.cuh" %}

  //
  // Partition: this thread's share of the copies and of the products
  //

  Tensor tAgA = local_partition(gA, ThrA{}, threadIdx.x);  // (BM/thr_m,BK/thr_k,k)
  Tensor tAcA = local_partition(cA, ThrA{}, threadIdx.x);  // (BM/thr_m,BK/thr_k,k) -> (m,k)
  Tensor tAsA = local_partition(sA, ThrA{}, threadIdx.x);  // (BM/thr_m,BK/thr_k)
  Tensor tBgB = local_partition(gB, ThrB{}, threadIdx.x);  // (BN/thr_n,BK/thr_k,k)
  Tensor tBcB = local_partition(cB, ThrB{}, threadIdx.x);  // (BN/thr_n,BK/thr_k,k) -> (n,k)
  Tensor tBsB = local_partition(sB, ThrB{}, threadIdx.x);  // (BN/thr_n,BK/thr_k)

  auto const [thr_n, thr_m] = idx2crd(int(threadIdx.x), ThrC{});
  Tensor tCsA = local_tile(sA, make_shape(get<0>(TileTC{}), _1{}), make_coord(thr_m, _));  // (TM,_1,BK)
  Tensor tCsB = local_tile(sB, make_shape(get<1>(TileTC{}), _1{}), make_coord(thr_n, _));  // (TN,_1,BK)
  auto const crd_TC = make_coord(thr_m, thr_n);
  Tensor tCcD = local_tile(cD, TileTC{}, crd_TC);                                          // (TM,TN) -> (m,n)
{% for t in c.epilogue() %}  Tensor tCg[[ t.is.name ]] = local_tile(g[[ t.is.name ]], TileTC{}, crd_TC);  // (TM,TN)
{% endfor %}
  Tensor tCrC = make_tensor<float>(TileTC{});                 // (TM,TN)
  Tensor tCrA = make_tensor<float>(get<0>(TileTC{}));         // (TM)
  Tensor tCrB = make_tensor<float>(get<1>(TileTC{}));         // (TN)
  clear(tCrC);

  //
  // Main loop: tiles along K, outer products of columns of sA and sB
  //

  auto const main_loop = [&](auto const& load) {
    for (int k_tile = 0; k_tile < size<2>(gA); ++k_tile) {
      load(k_tile);
      __syncthreads();  // all threads have written the tiles

      CUTE_UNROLL
      for (int k = 0; k < size<2>(tCsA); ++k) {
        copy_all(LoadA{}, tCsA(_,0,k), tCrA);
        copy_all(LoadB{}, tCsB(_,0,k), tCrB);
        gemm(tCrA, tCrB, tCrC);
      }
      __syncthreads();  // all threads have read the tiles before the next ones overwrite them
    }
  };

  // If the last element of the last tiles lies inside, all tiles are whole: a separate loop for them needs fewer registers.
  if (elem_less(cA(size<0>(cA) - 1, size<1>(cA) - 1, size<2>(cA) - 1), shape(mA)) &&
      elem_less(cB(size<0>(cB) - 1, size<1>(cB) - 1, size<2>(cB) - 1), shape(mB))) {
    main_loop([&](int k_tile) {
      copy_all(Single{}, tAgA(_,_,k_tile), tAsA);
      copy_all(Single{}, tBgB(_,_,k_tile), tBsB);
    });
  } else {
    main_loop([&](int k_tile) {
      copy_inside(tAgA(_,_,k_tile), tAcA(_,_,k_tile), shape(mA), tAsA);
      copy_inside(tBgB(_,_,k_tile), tBcB(_,_,k_tile), shape(mB), tBsB);
    });
  }

{% include "sgemm/epilogue_elements.cuh" %}
}

}  // namespace [[ c.plan.name() ]]
}  // namespace cutemplate
