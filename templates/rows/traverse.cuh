{% for r in s.reductions %}{% match r.group %}{% when None %}  auto state[[ r.value ]] = [[ r.op ]]::nothing();
{% when Some with ([groups, _]) %}  Tensor states[[ r.value ]] = make_tensor<[[ r.op ]]::State>(Shape<Int<[[ groups ]]>,Int<Chunks>>{});  // (groups of a vector,CHUNKS)
  CUTE_UNROLL
  for (int i = 0; i < size(states[[ r.value ]]); ++i) {
    states[[ r.value ]](i) = [[ r.op ]]::nothing();
  }
{% endmatch %}{% endfor %}{% for k in s.kept %}  Tensor kept[[ k ]] = make_tensor<Number>(Shape<Int<Vec>,Int<Chunks>>{});  // (VEC,CHUNKS)
{% endfor %}  CUTE_UNROLL
  for (int c = 0; c < Chunks; ++c) {
{% if s.last %}{% for t in matrices %}{% if t.kind == Kind::Late %}    move<Walk, typename Walk::Load[[ t.name ]]>(inside, c, t[[ t.name ]], r[[ t.name ]]);
{% endif %}{% endfor %}{% endif %}    CUTE_UNROLL
    for (int v = 0; v < Vec; ++v) {
      if (inside(v, c)) {
        [[ "[[maybe_unused]]" ]] int const column = get<1>(tcRow(v, _0{}, c));
        auto const y[[ s.number ]] = step[[ s.number ]]([[ s.arguments ]]);
{% for line in s.lines %}        [[ line ]]
{% endfor %}      }
    }
{% if s.last %}{% for t in matrices %}{% if t.kind == Kind::Store %}    move<Walk, typename Walk::Store[[ t.name ]]>(inside, c, r[[ t.name ]], t[[ t.name ]]);
{% endif %}{% endfor %}{% endif %}  }
{% for r in s.reductions %}{% match r.group %}{% when None %}  state[[ r.value ]] = of_lanes<[[ r.op ]], [[ d.schedule.threads.min(32) ]]>(state[[ r.value ]]);
{% when Some with ([groups, lanes]) %}  Tensor group[[ r.value ]] = make_tensor<Number>(Shape<Int<[[ groups ]]>,Int<Chunks>>{});  // (groups of a vector,CHUNKS)
  CUTE_UNROLL
  for (int i = 0; i < size(group[[ r.value ]]); ++i) {
    group[[ r.value ]](i) = [[ r.op ]]::result(of_lanes<[[ r.op ]], [[ lanes ]]>(states[[ r.value ]](i)));
  }
{% endmatch %}{% endfor %}{% if s.meets() && d.schedule.parts() > 1 %}{% include "rows/meet.cuh" %}{% endif %}{% for r in s.reductions %}{% if r.group.is_none() %}  Number const value[[ r.value ]] = [[ r.op ]]::result(state[[ r.value ]]);
{% endif %}{% endfor %}
