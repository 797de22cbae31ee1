using Params  = [[ c.plan.name() ]]_params;
{% if c.recipe.is_narrow() -%}
using Element = [[ c.element ]];                 // Q and O
using Stored  = float_e4m3_t;                 // K and V
{% else -%}
using Element = [[ c.element ]];                 // Q, K, V and O
{% endif -%}
using Head    = [[ c.head ]];  // elements of a row of Q and K
using Value   = [[ c.value ]];  // elements of a row of V and O

{% include "ieee.cuh" %}

{% for a in c.aliases -%}
using [[ a.name ]] = [[ a.ty ]];  // [[ a.comment ]]
{% endfor %}
//
// Preconditions: every number that the plan computed
//

static_assert(Head{} <= size<1>(TileQ{}) && Value{} <= size<0>(TileV{}), "rows fit their tiles");
{% for a in c.assertions -%}
static_assert([[ a.condition ]], "[[ a.what ]]");
{% endfor %}
{% include "partition.cuh" %}

{% include "copy_all.cuh" %}
