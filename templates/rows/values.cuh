
{%- for g in s.values %}
  Tensor group[[ g.value ]] = make_tensor<Number>(Shape<Int<[[ g.groups ]]>,Int<Chunks>>{});  // (GROUPS,CHUNKS)
{%- endfor %}
{%- if s.values.is_empty() %}
  auto const y[[ s.number ]] = step[[ s.number ]]([[ s.arguments ]]);
{%- for line in s.lines %}
  [[ line ]]
{%- endfor %}
{%- else %}
  CUTE_UNROLL
  for (int c = 0; c < Chunks; ++c) {
    CUTE_UNROLL
    for (int v = 0; v < Vec; v += [[ s.every ]]) {
      [[ "[[maybe_unused]]" ]] int const column = get<1>(tcRow(v, _0{}, c, rank));
      auto const y[[ s.number ]] = step[[ s.number ]]([[ s.arguments ]]);
{%- for line in s.lines %}
      [[ line ]]
{%- endfor %}
    }
  }
{%- endif %}
