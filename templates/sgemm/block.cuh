[[ c.banner ]]
//
// SGEMM, [[ what ]]: A is (M,K[[ c.l ]]), B is (K,N[[ c.l ]]), D is (M,N[[ c.l ]]).
// Launch: [[ c.plan.threads() ]] threads, [[ c.blocks_doc ]] blocks, no dynamic shared memory.
{% include "sgemm/head.cuh" %}
{% include "sgemm/copy_inside.cuh" %}
using TileA   = [[ c.tile_a ]];  // (BM,BK)
using TileB   = [[ c.tile_b ]];  // (BK,BN)
using TileD   = [[ c.tile_d ]];  // (BM,BN)
{% include "sgemm/smem.cuh" %}using ThrA    = [[ thr_a ]];  // (thr_m,thr_k) -> tid, copies A
using ThrB    = [[ thr_b ]];  // (thr_k,thr_n) -> tid, copies B
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
{% include "sgemm/smem_checks.cuh" %}
CUTE_DEVICE
void
kernel([[ c.plan.name() ]]_params const& params)
{
{% include "sgemm/tensors.cuh" %}
  //
  // Tiles of this CTA, in global and in shared memory
  //

  auto const crd_A = make_coord(int(blockIdx.y), _);
  auto const crd_B = make_coord(_, int(blockIdx.x));
  auto const crd_D = make_coord(int(blockIdx.y), int(blockIdx.x));
  Tensor gA = local_tile(mA, TileA{}, crd_A);                               // (BM,BK,k)
  Tensor gB = local_tile(mB, TileB{}, crd_B);                               // (BK,BN,k)
  Tensor cA = local_tile(make_identity_tensor(shape(mA)), TileA{}, crd_A);  // (BM,BK,k) -> (m,k)
  Tensor cB = local_tile(make_identity_tensor(shape(mB)), TileB{}, crd_B);  // (BK,BN,k) -> (k,n)
  Tensor cD = local_tile(make_identity_tensor(shape(mD)), TileD{}, crd_D);  // (BM,BN) -> (m,n)
{% for t in c.epilogue %}  Tensor g[[ t.name ]] = local_tile(m[[ t.name ]], TileD{}, crd_D);  // (BM,BN)
{% endfor %}
{% for s in smem %}  alignas([[ s.alignment ]]) __shared__ float smem_[[ s.param ]][cosize_v<Smem[[ s.name ]]>];
{% endfor %}  Tensor sA = make_tensor(make_smem_ptr(smem_a), SmemA{});  // (BM,BK)
  Tensor sB = make_tensor(make_smem_ptr(smem_b), SmemB{});  // (BK,BN)

  //
  // Partition: what this thread copies, and what it computes
  //

  Tensor tAgA = local_partition(gA, ThrA{}, threadIdx.x);  // (BM/thr_m,BK/thr_k,k)
  Tensor tAcA = local_partition(cA, ThrA{}, threadIdx.x);  // (BM/thr_m,BK/thr_k,k) -> (m,k)
  Tensor tAsA = local_partition(sA, ThrA{}, threadIdx.x);  // (BM/thr_m,BK/thr_k)
  Tensor tBgB = local_partition(gB, ThrB{}, threadIdx.x);  // (BK/thr_k,BN/thr_n,k)
  Tensor tBcB = local_partition(cB, ThrB{}, threadIdx.x);  // (BK/thr_k,BN/thr_n,k) -> (k,n)
  Tensor tBsB = local_partition(sB, ThrB{}, threadIdx.x);  // (BK/thr_k,BN/thr_n)

  auto const [thr_n, thr_m] = idx2crd(int(threadIdx.x), ThrC{});
  Tensor tCsA = local_tile(sA, make_shape(get<0>(TileTC{}), _1{}), make_coord(thr_m, _));  // (TM,_1,BK)
  Tensor tCsB = local_tile(sB, make_shape(_1{}, get<1>(TileTC{})), make_coord(_, thr_n));  // (_1,TN,BK)
  Tensor tCcD = local_tile(cD, TileTC{}, make_coord(thr_m, thr_n));                        // (TM,TN) -> (m,n)
{% for t in c.epilogue %}  Tensor tCg[[ t.name ]] = local_tile(g[[ t.name ]], TileTC{}, make_coord(thr_m, thr_n));  // (TM,TN)
{% endfor %}
  Tensor tCrC = make_tensor<float>(TileTC{});                 // (TM,TN)
  Tensor tCrA = make_tensor<float>(get<0>(TileTC{}));         // (TM)
  Tensor tCrB = make_tensor<float>(get<1>(TileTC{}));         // (TN)
  clear(tCrC);

  //
  // Main loop: tiles along K, outer products of columns of sA with rows of sB
  //

  auto const main_loop = [&](auto const& load) {
    for (int k_tile = 0; k_tile < size<2>(gA); ++k_tile) {
      load(k_tile);
      __syncthreads();  // the tiles are whole before they are read

      CUTE_UNROLL
      for (int k = 0; k < size<2>(tCsA); ++k) {
        copy(LoadA{}, tCsA(_,0,k), tCrA);
        copy(LoadB{}, tCsB(0,_,k), tCrB);
        CUTE_UNROLL
        for (int i = 0; i < size<0>(tCrC); ++i) {
          CUTE_UNROLL
          for (int j = 0; j < size<1>(tCrC); ++j) {
            tCrC(i, j) += tCrA(i) * tCrB(j);
          }
        }
      }
      __syncthreads();  // the tiles were read before they are overwritten
    }
  };

  // All tiles are whole where the last element of the last ones lies inside; a loop of its own needs fewer registers.
  if (elem_less(cA(size<0>(cA) - 1, size<1>(cA) - 1, size<2>(cA) - 1), shape(mA)) &&
      elem_less(cB(size<0>(cB) - 1, size<1>(cB) - 1, size<2>(cB) - 1), shape(mB))) {
    main_loop([&](int k_tile) {
      copy(Single{}, tAgA(_,_,k_tile), tAsA);
      copy(Single{}, tBgB(_,_,k_tile), tBsB);
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
