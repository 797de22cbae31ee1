{% for a in c.d.tiling.aliases() %}using [[ a.name ]] = [[ a.ty ]];  // [[ a.comment ]]
{% endfor %}{% include "sgemm/smem.cuh" %}
//
// Preconditions: every number that the plan computed
//

{% for a in c.d.tiling.assertions() %}static_assert([[ a.condition ]], "[[ a.what ]]");
{% endfor %}static_assert(size<1>(Mma{}.permutation_mnk<1>()) == [[ c.vec_n() ]], "neighbours of one thread along N");
static_assert(decltype(size<0>(partition_shape_C(Mma{}, TileD{})))::value == 1, "an MMA has one value of D a thread");
static_assert(decltype(size<2>(partition_shape_C(Mma{}, TileD{})))::value % [[ c.vec_n() ]] == 0, "those along N are whole vectors");
{% include "sgemm/smem_checks.cuh" %}
