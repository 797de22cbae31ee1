{% match s.every %}{% when None %}  auto const y[[ s.number ]] = step[[ s.number ]]([[ s.arguments ]]);
{% for line in s.lines %}  [[ line ]]
{% endfor %}{% when Some with (every) %}{% for (value, groups) in s.of_groups %}  Tensor group[[ value ]] = make_tensor<Number>(Shape<Int<[[ groups ]]>,Int<Chunks>>{});  // (groups of a vector,CHUNKS)
{% endfor %}  CUTE_UNROLL
  for (int c = 0; c < Chunks; ++c) {
    CUTE_UNROLL
    for (int v = 0; v < Vec; v += [[ every ]]) {
      [[ "[[maybe_unused]]" ]] int const column = get<1>(tcRow(v, _0{}, c));
      auto const y[[ s.number ]] = step[[ s.number ]]([[ s.arguments ]]);
{% for line in s.lines %}      [[ line ]]
{% endfor %}    }
  }
{% endmatch %}
