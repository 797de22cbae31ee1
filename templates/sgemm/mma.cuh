{% include "sgemm/types.cuh" %}using VecN    = Int<[[ c.vec_n() ]]>;  // neighbours of one thread along N
using VectorN = [[ c.vector_n() ]];  // what moves them at once

//
// Preconditions: every number that the plan computed
//

{% for a in c.assertions %}static_assert([[ a.condition ]], "[[ a.what ]]");
{% endfor %}static_assert(size<1>(Mma{}.permutation_mnk<1>()) == VecN{}, "neighbours of one thread along N");
static_assert(sizeof(VectorN) == VecN{} * sizeof(float), "neighbours along N make one vector");
static_assert(decltype(size<0>(partition_shape_C(Mma{}, TileD{})))::value == 1, "an MMA has one value of D a thread");
static_assert(decltype(size<2>(partition_shape_C(Mma{}, TileD{})))::value % VecN{} == 0, "those along N are whole vectors");
