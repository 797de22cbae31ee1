using Element  = [[ c.element ]];  // A and B
using ElementD = [[ c.element_d ]];

{% for a in c.aliases -%}
using [[ a.name ]] = [[ a.ty ]];  // [[ a.comment ]]
{% endfor %}
//
// Preconditions: every number that the plan computed
//

{% for a in c.assertions -%}
static_assert([[ a.condition ]], "[[ a.what ]]");
{% endfor %}
