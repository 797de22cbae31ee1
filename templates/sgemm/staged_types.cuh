{% include "sgemm/mma.cuh" %}

struct SharedStorage {
{% for f in c.factors %}  alignas([[ f.tile.align.0 ]]) float [[ f.param ]][cosize_v<Smem[[ f.tile.name ]]>];
{% endfor %}};
using VecA = Int<[[ c.factors[0].vec ]]>;  // elements of one copy of A
using VecB = Int<[[ c.factors[1].vec ]]>;  // and of B
static_assert(sizeof(SharedStorage) == [[ c.plan.smem().0 ]], "bytes of dynamic shared memory");
static_assert(alignof(SharedStorage) == [[ c.alignment() ]], "as it is declared");
{% for f in c.factors -%}
static_assert(offsetof(SharedStorage, [[ f.param ]]) % [[ f.tile.align.0 ]] == 0, "s[[ f.tile.name ]] begins at its widest access");
{% endfor -%}
static_assert(CopyA::TiledLayout_TV{}(0, VecA{} - _1{}) == VecA{} - _1{}, "vectors of A lie along M, as their predicates do");
static_assert(CopyB::TiledLayout_TV{}(0, VecB{} - _1{}) == VecB{} - _1{}, "vectors of B lie along N, as their predicates do");
static_assert(size<2>(SmemA{}) >= 2 && size<2>(SmemA{}) == size<2>(SmemB{}), "one stage is written while another is read");
static_assert(size<1>(TileA{}) % 2 == 0, "columns are in two sets of registers by turns, from tile to tile");
constexpr bool WarpSync = [[ c.d.recipe.warp_sync ]];  // keeps the compiler from moving loads of shared memory to their use

{% include "copy_all_if.cuh" %}

{% include "sgemm/copy_residue.cuh" %}
