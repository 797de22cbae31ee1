using TileA   = [[ c.tile_a ]];  // (BM,BK)
using TileB   = [[ c.tile_b ]];  // (BN,BK)
using TileD   = [[ c.tile_d ]];  // (BM,BN)
{% let smem = t.smem %}{% include "sgemm/smem.cuh" %}{% for f in t.fills %}using Copy[[ f.matrix ]]   = decltype(make_tiled_copy(Copy_Atom<[[ f.op ]], float>{},
                                         [[ f.thr ]]{},    // (thr_[[ f.rows ]],thr_k) -> tid
                                         [[ f.val ]]{}));  // (val_[[ f.rows ]],val_k)
{% endfor -%}
using ThrC    = [[ t.thr_c ]];  // (thr_m,thr_n,thr_k) -> tid
using PermM   = [[ t.perm_m ]];  // each thread takes [[ t.vec_m ]] neighbours along M
using PermN   = [[ t.perm_n ]];  // and [[ t.vec_n ]] along N
using Mma     = decltype(make_tiled_mma(MMA_Atom<UniversalFMA<float>>{}, ThrC{}, make_tile(PermM{}, PermN{}, _1{})));

//
// Preconditions: every number that the plan computed
//

static_assert(size(Mma{}) == [[ c.plan.threads() ]], "every thread computes");
static_assert(size(CopyA{}) == [[ c.plan.threads() ]] && size(CopyB{}) == [[ c.plan.threads() ]], "every thread copies");
static_assert(size<0>(TileD{}) % size(PermM{}) == 0, "thread tiles make the tile of the CTA along M");
static_assert(size<1>(TileD{}) % size(PermN{}) == 0, "and along N");
static_assert(size<1>(PermM{}) == [[ t.vec_m ]] && size<1>(PermN{}) == [[ t.vec_n ]], "neighbours of one thread");
static_assert(decltype(size<0>(partition_shape_C(Mma{}, TileD{})))::value == 1, "an MMA has one value of D a thread");
static_assert(decltype(size<2>(partition_shape_C(Mma{}, TileD{})))::value % [[ t.vec_n ]] == 0, "those along N are whole vectors");
{% include "sgemm/smem_checks.cuh" %}
