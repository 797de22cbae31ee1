[[ banner ]]
//
// New keys and values of each sequence go to its pages. Pairs of elements of a key are rotated by its position.
// Launch: [[ plan.threads() ]] threads; a block for each tile of rows, along y of keys, of values, and of queries.
#pragma once

#include <cute/tensor.hpp>

#include "[[ plan.name() ]]_params.h"

namespace cutemplate {
namespace [[ plan.name() ]] {

using namespace cute;

{% include "ieee.cuh" %}

using Params  = [[ plan.name() ]]_params;
using Element = [[ element ]];

{% for a in aliases -%}
using [[ a.name ]] = [[ a.ty ]];  // [[ a.comment ]]
{% endfor %}
{% for a in assertions -%}
static_assert([[ a.condition ]], "[[ a.what ]]");
{% endfor %}
{% include "copy_all.cuh" %}

{% include "append/rows.cuh" %}
{% if recipe.rotary() > 0 %}
{% include "append/rotate.cuh" %}
{% endif %}
{% for m in moves -%}
// [[ m.what ]], of `heads` heads.
template <class From, class To, class Keep>
CUTE_DEVICE
void
[[ m.function ]](Params const& params, int heads, From const& from, To const& to, Keep const& keep)
{
{%- if recipe.rotary() > 0 %}
  using Pairs = Shape<Int<[[ rows[0] ]]>,Int<[[ recipe.rotary() ]]>>;
  auto const rotated = [&](Row const& row, auto const& src, auto&& dst, auto const& kept, auto const& crd) {
    rotate(params, row.position, src, dst, kept, crd);
  };
  move<Load[[ m.of ]]Pairs, Store[[ m.of ]]Pairs, Pairs>(params, heads, 0, from, to, keep, rotated);
{%- endif %}
{%- if others > 0 %}
  using Others = Shape<Int<[[ rows[0] ]]>,Int<[[ others ]]>>;
  move<Load[[ m.of ]]Others, Store[[ m.of ]]Others, Others>(params, heads, [[ recipe.rotary() ]], from, to, keep, AsTheyAre{});
{%- endif %}
}

{% endfor -%}
CUTE_DEVICE
void
kernel(Params const& params)
{
  assert_ieee();
  if (blockIdx.y == 0) {
    auto const from = [&](Row const& row) {
      return row_in(params.newk, [[ self.strides("newk") ]], row);
    };
    auto const to = [&](Row const& row) {
      return place_in(params, static_cast<[[ page ]]*>(params.k), params.k_stride0, params.k_stride1, params.k_stride2, row);
    };
    move_keys(params, params.hk, from, to, [[ keeps[0] ]]);
  } else if (blockIdx.y == 1) {
    using Values = Shape<Int<[[ rows[1] ]]>,Int<[[ recipe.value() ]]>>;
    auto const from = [&](Row const& row) {
      return row_in(params.newv, [[ self.strides("newv") ]], row);
    };
    auto const to = [&](Row const& row) {
      return place_in(params, static_cast<[[ page ]]*>(params.v), params.v_stride0, params.v_stride1, params.v_stride2, row);
    };
    move<LoadValues, StoreValues, Values>(params, params.hk, 0, from, to, [[ keeps[1] ]], AsTheyAre{});
{%- if recipe.queries %}
  } else {
    auto const from = [&](Row const& row) {
      return row_in(params.q, [[ self.strides("q") ]], row);
    };
    auto const to = [&](Row const& row) {
      auto const ptr = row_in(params.rotated, [[ self.strides("rotated") ]], row);
      return const_cast<Element*>(ptr);
    };
    [[ self.move_queries() ]](params, params.hq, from, to, [[ turned ]]);
{%- endif %}
  }
}

}  // namespace [[ plan.name() ]]
}  // namespace cutemplate
