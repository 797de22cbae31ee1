using Element  = [[ c.element ]];  // A and B
{% for t in c.epilogue() %}using Element[[ t.is.name ]] = [[ t.is.dtype.cxx() ]];
{% endfor %}
{% include "ieee.cuh" %}

[[ c.op.helpers ]]// Epilogue of a = sum over k of A(m,k) * B(n,k)[[ c.op.inputs_doc ]]: [[ c.epilogue_text() ]]
[[ c.op.functor ]]

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

