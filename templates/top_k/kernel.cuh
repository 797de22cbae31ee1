[[ banner ]]
//
// The [[ d.recipe.k ]] largest elements of each row, in descending order, and their columns. NaN beats every number; of equal
// elements the lower column comes first.
// Launch: [[ plan.threads() ]] threads, M blocks: of `kernel` where all rows are aligned vectors of [[ d.vec ]] elements, else of
// `[[ elements ]]`.
#pragma once

#include <cute/tensor.hpp>

#include "[[ plan.name() ]]_params.h"

namespace cutemplate {
namespace [[ plan.name() ]] {

using namespace cute;

{% include "ieee.cuh" %}

using Element = [[ element ]];
using Tile = Shape<_1,Int<[[ d.columns ]]>>;  // columns that the threads of a row have at a time
constexpr int Threads = [[ plan.threads() ]];
constexpr int Warps = Threads / 32;
constexpr int K = [[ d.recipe.k ]];
{% for w in walks %}
{% include "rows/walk.cuh" %}
{% endfor %}
static_assert(K <= Threads && Threads % 32 == 0, "each thread writes a result");

[[ helpers ]]
{% include "copy_all.cuh" %}

{% include "rows/move.cuh" %}

{% include "top_k/order.cuh" %}

{% include "top_k/largest.cuh" %}

{% include "top_k/keep.cuh" %}

{% include "top_k/row.cuh" %}

CUTE_DEVICE
void
kernel([[ plan.name() ]]_params const& params)
{
  choose<Vectors>(params);
}

CUTE_DEVICE
void
[[ elements ]]([[ plan.name() ]]_params const& params)
{
  choose<Elements>(params);
}

}  // namespace [[ plan.name() ]]
}  // namespace cutemplate
