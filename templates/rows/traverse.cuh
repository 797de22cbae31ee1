
{%- for r in s.of_rows() %}
  auto state[[ r.value ]] = [[ r.op ]]::nothing();
{%- endfor %}
{%- for r in s.of_groups() %}
  using Groups[[ r.value ]] = Shape<Int<[[ r.groups ]]>,Int<Chunks>>;  // groups of a vector, chunks
  Tensor states[[ r.value ]] = make_tensor<[[ r.op ]]::State>(Groups[[ r.value ]]{});  // (GROUPS,CHUNKS)
  CUTE_UNROLL
  for (int i = 0; i < size(states[[ r.value ]]); ++i) {
    states[[ r.value ]](i) = [[ r.op ]]::nothing();
  }
{%- endfor %}
{%- for k in s.kept %}
  Tensor kept[[ k ]] = make_tensor<Number>(Shape<Int<Vec>,Int<Chunks>>{});  // (VEC,CHUNKS)
{%- endfor %}
{%- if d.schedule.unrolls(d.tensors.iter()) %}
  CUTE_UNROLL
{%- endif %}
  for (int i = 0; i < tiles; ++i) {
    [[ "[[maybe_unused]]" ]] int const tile = rank * RowTiles + i;
    auto const inside = inside_of(tile);
{%- if s.arrives %}
    wait_for<cute::min(RowTiles - 1, 15)>(tiles - 1 - i);
{%- endif %}
{%- for t in s.ahead %}
    move_all<Walk, typename Walk::Load[[ t ]]>(inside, t[[ t ]](_, _, _, tile), r[[ t ]]);
{%- endfor %}
{%- for t in s.staged %}
    move_all<Walk, typename Walk::Load[[ t ]]>(inside, w[[ t ]](_, _, _, i), r[[ t ]]);
{%- endfor %}
    CUTE_UNROLL
    for (int c = 0; c < Chunks; ++c) {
{%- for t in s.late %}
      move<Walk, typename Walk::Load[[ t ]]>(inside, c, t[[ t ]](_, _, _, tile), r[[ t ]]);
{%- endfor %}
{%- for line in s.ahead_of_vector %}
      [[ line ]]
{%- endfor %}
      CUTE_UNROLL
      for (int v = 0; v < Vec; ++v) {
        if (inside(v, c)) {
          [[ "[[maybe_unused]]" ]] int const column = get<1>(tcRow(v, _0{}, c, tile));
          auto const y[[ s.number ]] = step[[ s.number ]]([[ s.arguments ]]);
{%- for line in s.lines %}
          [[ line ]]
{%- endfor %}
        }
      }
{%- for line in s.behind_vector %}
      [[ line ]]
{%- endfor %}
{%- for t in s.stores %}
      move<Walk, typename Walk::Store[[ t ]]>(inside, c, r[[ t ]], t[[ t ]](_, _, _, tile));
{%- endfor %}
    }
  }
{%- for r in s.of_columns() %}
{%- include "rows/find.cuh" %}
{%- endfor %}
{%- for r in s.of_rows() %}
  state[[ r.value ]] = of_lanes<[[ r.op ]], [[ d.schedule.lanes() ]]>(state[[ r.value ]]);
{%- endfor %}
{%- for r in s.of_groups() %}
  Tensor group[[ r.value ]] = make_tensor<Number>(Groups[[ r.value ]]{});  // (GROUPS,CHUNKS)
  CUTE_UNROLL
  for (int i = 0; i < size(group[[ r.value ]]); ++i) {
    group[[ r.value ]](i) = [[ r.op ]]::result(of_lanes<[[ r.op ]], [[ r.lanes ]]>(states[[ r.value ]](i)));
  }
{%- endfor %}
{%- match s.meeting %}
{%- when Meeting::None %}
{%- when Meeting::Warps %}
{%- include "rows/meet.cuh" %}
{%- when Meeting::Ctas %}
{%- include "rows/meet_ctas.cuh" %}
{%- endmatch %}
{%- for r in s.of_rows() %}
  Number const value[[ r.value ]] = [[ r.op ]]::result(state[[ r.value ]]);
{%- for second in r.second %}
  Number const value[[ second ]] = [[ r.op ]]::second(state[[ r.value ]], params.n);
{%- endfor %}
{%- endfor %}
