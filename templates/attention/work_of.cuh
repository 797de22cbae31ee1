{% if c.recipe.varlen -%}
{% include "attention/work_varlen.cuh" %}
{%- else -%}
{% include "attention/work_dense.cuh" %}
{%- endif %}