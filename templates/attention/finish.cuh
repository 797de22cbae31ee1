  Tensor cO = make_identity_tensor(TileO{});                                                   // (BM,DV) -> (query,element)
  Tensor rows_o = by_rows(tOrO);                                                               // (ROWS,COLUMNS)
{%- if c.recipe.sinks %}
  softmax.sink(__fmul_rn(static_cast<float const*>(params.sinks)[work.q.head], 1.44269504088896f), rows_o);
{%- endif %}
{%- if c.recipe.is_narrow() %}
  float const of_values = scale_of(params.scalev, work.k.head);
{%- endif %}
  CUTE_UNROLL
  for (int row = 0; row < size<0>(rows_o); ++row) {
    float const sum = softmax.whole(row);
    float const reciprocal = __frcp_rn(sum);
    CUTE_UNROLL
    for (int n = 0; n < size<1>(rows_o); ++n) {
      rows_o(row,n) = sum == 0 ? 0 : [[ c.of_values("__fmul_rn(rows_o(row,n), reciprocal)") ]];
    }
  }
{%- if c.recipe.lse %}
{% include "attention/logarithms.cuh" %}
{%- endif %}
