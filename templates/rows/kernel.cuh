[[ banner ]]
//
// Rows: [[ d.recipe.function ]]
// Launch: [[ plan.threads() ]] threads, [[ grid ]] blocks along x: of `kernel` where all rows are aligned
// vectors of [[ d.schedule.vec ]] elements, else of `[[ elements ]]`.
#pragma once

#include <cute/tensor.hpp>
{%- for header in headers %}
#include <[[ header ]]>
{%- endfor %}

#include "[[ plan.name() ]]_params.h"

namespace cutemplate {
namespace [[ plan.name() ]] {

using namespace cute;

{% include "ieee.cuh" %}

using Number = [[ number ]];  // what is computed in
{%- for t in matrices %}
using Element[[ t.name ]] = [[ t.element ]];
{%- endfor %}

using Tile = Shape<Int<[[ d.schedule.rows ]]>,Int<[[ d.schedule.columns() ]]>>;  // rows and columns of a CTA
constexpr int RowThreads = [[ d.schedule.threads ]];
constexpr int RowWarps = [[ d.schedule.warps() ]];
constexpr int RowCtas = [[ d.schedule.cluster ]];
constexpr int RowTiles = [[ d.schedule.tiles ]];  // tiles that a CTA has of a row; 0 for as many as there are
{% for w in walks %}
{% include "rows/walk.cuh" %}
{% endfor %}
//
// Preconditions: every number that the plan computed
//
{% for t in matrices %}
static_assert(sizeof(Element[[ t.name ]]) == [[ t.bytes ]], "type of [[ t.name ]]");
{%- endfor %}
static_assert(RowThreads * size<0>(Tile{}) == [[ plan.threads() ]], "every thread has a row");
static_assert((RowThreads & (RowThreads - 1)) == 0, "lanes and warps reduce in pairs");
static_assert(RowThreads % 32 == 0 || 32 % RowThreads == 0, "rows end where warps do");

[[ helpers ]]
{%- for s in parts %}[[ s.functor ]]
{% endfor %}{% include "copy_all.cuh" %}
{%- if self.rounds_pairs() %}

{% include "round_all.cuh" %}
{%- endif %}

{% include "rows/reduce.cuh" %}

{% include "rows/lanes.cuh" %}

{% include "rows/move.cuh" %}
{%- if d.schedule.hold == Hold::Shared %}

{% include "rows/wait.cuh" %}
{%- endif %}
{%- if d.schedule.stages > 1 %}
{% include "rows/queue.cuh" %}
{%- endif %}

// A tile of rows, the part of it that belongs to CTA `rank`; `columns` has what is reduced over rows.
template <class Walk, class Columns>
CUTE_DEVICE
void
traverse([[ plan.name() ]]_params const& params, int row_tile, int rank, Columns& columns)
{
  assert_ieee();
{% include "rows/tensors.cuh" %}
{%- for s in parts %}

  //
  // Step [[ s.number ]]: [[ s.comment ]]
  //

  Step[[ s.number ]] const step[[ s.number ]]{[[ s.scalars ]]};
{%- if s.traverses %}
{%- include "rows/traverse.cuh" %}
{%- else %}
{%- include "rows/values.cuh" %}
{%- endif %}
{%- endfor %}
{%- include "rows/written.cuh" %}
}

[[ entries ]]
}  // namespace [[ plan.name() ]]
}  // namespace cutemplate
