
{%- for w in groups %}
  CUTE_UNROLL
  for (int c = 0; c < Chunks; ++c) {
    CUTE_UNROLL
    for (int v = 0; v < Vec; v += [[ w.every ]]) {
      int const column = get<1>(tcRow(v, _0{}, c, rank));
      if (column < width && column % [[ w.group ]] == 0) {
        m[[ w.name ]](m, column / [[ w.group ]]) = [[ w.value ]];
      }
    }
  }
{%- endfor %}
{%- for w in rows %}
  if (threadIdx.x % RowThreads == 0 && rank == 0 && m < params.m) {
    m[[ w.name ]](m) = [[ w.value ]];
  }
{%- endfor %}
