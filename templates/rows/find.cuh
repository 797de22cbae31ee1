

  // The lanes that have the best of all find its column, in the one vector where it is.
  auto const best[[ r.value ]] = of_lanes<[[ r.op ]]::Most, [[ d.schedule.lanes() ]]>(state[[ r.value ]].x);
  int column[[ r.value ]] = INT32_MAX;
  if (state[[ r.value ]].column != INT32_MAX && [[ r.op ]]::alike(state[[ r.value ]].x, best[[ r.value ]])) {
    [[ "[[maybe_unused]]" ]] int const i = state[[ r.value ]].column / Chunks;
    uint64_t const vector = uint64_t(1) << (state[[ r.value ]].column % Chunks);  // as bits: registers have no run-time index
    int const tile = rank * RowTiles + i;
    auto const inside = inside_of(tile);
    CUTE_UNROLL
    for (int c = 0; c < Chunks; ++c) {
      if (vector >> c & 1) {
{%- for t in s.ahead %}
        move<Walk, typename Walk::Load[[ t ]]>(inside, c, t[[ t ]](_, _, _, tile), r[[ t ]]);
{%- endfor %}
{%- for t in s.late %}
        move<Walk, typename Walk::Load[[ t ]]>(inside, c, t[[ t ]](_, _, _, tile), r[[ t ]]);
{%- endfor %}
{%- for t in s.staged %}
        move<Walk, typename Walk::Load[[ t ]]>(inside, c, w[[ t ]](_, _, _, i), r[[ t ]]);
{%- endfor %}
        CUTE_UNROLL
        for (int v = 0; v < Vec; ++v) {
          if (inside(v, c)) {
            int const column = get<1>(tcRow(v, _0{}, c, tile));
            auto const y[[ s.number ]] = step[[ s.number ]]([[ s.arguments ]]);
            if ([[ r.op ]]::alike([[ r.y ]], best[[ r.value ]])) {
              column[[ r.value ]] = cute::min(column[[ r.value ]], column);
            }
          }
        }
      }
    }
  }
  state[[ r.value ]] = {best[[ r.value ]], column[[ r.value ]]};
