using Params   = [[ c.plan.name() ]]_params;
using Element  = [[ c.element ]];  // [[ c.of_element ]]
{%- for t in c.epilogue() %}
using Element[[ t.is.name ]] = [[ t.is.dtype.cxx() ]];
{%- endfor %}
constexpr int outputs  = [[ c.written().len() ]];  // D, or D and E
constexpr bool batched = [[ c.batched() ]];  // whether all tensors have a last mode L

{% include "ieee.cuh" %}

[[ c.op.helpers ]]// Epilogue of [[ c.op.sums_doc ]][[ c.op.inputs_doc ]]: [[ c.epilogue_text() ]]
[[ c.op.functor ]]

// Element of output I of the epilogue: 0 for D, 1 for E.
template <int I, class Y>
CUTE_DEVICE
[[ c.result(c.d()) ]]
output(Y const& y)
{
  [[ c.compute() ]] value;
  if constexpr (outputs > 1) {
    value = get<I>(y);
  } else {
    value = y;
  }
  return [[ c.given("value") ]];
}

{% for a in c.aliases -%}
using [[ a.name ]] = [[ a.ty ]];  // [[ a.comment ]]
{% endfor %}
//
// Preconditions: every number that the plan computed
//

{% for a in c.assertions -%}
static_assert([[ a.condition ]], "[[ a.what ]]");
{% endfor %}
{% include "partition.cuh" %}

{% match c.groups() %}
{%- when Groups::Rows | Groups::Masked %}
{%- include "gemm/groups.cuh" %}
{%- when Groups::K -%}
{% include "gemm/of_batch.cuh" %}
{%- include "gemm/groups_k.cuh" %}
{%- when Groups::None -%}
{% include "gemm/of_batch.cuh" %}
{%- endmatch %}

// Hides a value from the optimiser, so that what depends on it is recomputed instead of held in registers.
CUTE_DEVICE
int
anew(int number)
{
  asm volatile("" : "+r"(number));
  return number;
}
