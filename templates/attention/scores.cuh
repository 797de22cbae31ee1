{% match c.score -%}
{% when Some with (score) -%}
{% include "attention/score.cuh" %}
{%- when None -%}
{% include "attention/score_none.cuh" %}
{%- endmatch %}

{% include "attention/softmax.cuh" %}

{% include "attention/weights.cuh" %}
