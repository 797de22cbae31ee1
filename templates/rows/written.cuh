{% for w in groups %}  CUTE_UNROLL
  for (int c = 0; c < Chunks; ++c) {
    CUTE_UNROLL
    for (int v = 0; v < Vec; v += [[ w.every ]]) {
      int const column = get<1>(tcRow(v, _0{}, c));
      if (column < width && column % [[ w.group ]] == 0) {
        m[[ w.name ]](m, column / [[ w.group ]]) = [[ w.value ]];
      }
    }
  }
{% endfor %}{% if !rows.is_empty() %}  if (threadIdx.x % RowThreads == 0 && {% if d.schedule.cluster > 1 %}int(blockIdx.x) % RowCtas == 0 && {% endif %}m < params.m) {
{% for w in rows %}    m[[ w.name ]](m) = [[ w.value ]];
{% endfor %}  }
{% endif %}
