using Params   = [[ c.plan.name() ]]_params;
using Element  = [[ c.element ]];  // [[ c.of_element ]]
{%- for t in c.epilogue() %}
using Element[[ t.is.name ]] = [[ t.is.dtype.cxx() ]];
{%- endfor %}
constexpr int outputs  = [[ c.written().len() ]];  // D, or D and E
constexpr bool batched = [[ c.batched() ]];  // whether all tensors have a last mode L

{% include "ieee.cuh" %}

[[ c.op.helpers ]]// Epilogue of a = sum over k of A(m,k) * B(n,k)[[ c.op.inputs_doc ]]: [[ c.epilogue_text() ]]
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

{% match c.grouped() %}
{%- when true %}
{%- include "gemm/groups.cuh" %}
{%- when false -%}
// The matrix of a tile's batch. Without batches a tensor is a single matrix.
template <class T, class Crd>
CUTE_DEVICE
auto
of_batch(T const& tensor, Crd const& crd)
{
  if constexpr (batched) {
    return tensor(_,_,get<2>(crd));
  } else {
    return tensor;
  }
}
{%- if c.groups_k() %}
{%- include "gemm/groups_k.cuh" %}
{%- endif %}
{%- endmatch %}

// Hides a value from the optimiser, so that what depends on it is recomputed instead of held in registers.
CUTE_DEVICE
int
anew(int number)
{
  asm volatile("" : "+r"(number));
  return number;
}
