// Of as many lanes side by side, for each of them.
template <class Op, int Lanes>
CUTE_DEVICE
typename Op::State
of_lanes(typename Op::State state)
{
  if constexpr (is_same_v<typename Op::State, Best>) {
    // The best first, then its column.
    Number const best = of_lanes<typename Op::Most, Lanes>(state.x);
    return {best, of_lanes<First, Lanes>(Op::alike(state.x, best) ? state.column : INT32_MAX)};
{%- if d.passes.pairs().len() > 0 %}
  } else if constexpr (is_same_v<typename Op::State, Most>) {
    // The largest first, then the sums below it.
    Number const most = of_lanes<Max, Lanes>(state.most);
    return {most, of_lanes<Sum, Lanes>(Op::below(state, most))};
{%- endif %}
  } else {
    CUTE_UNROLL
    for (int lanes = Lanes / 2; lanes > 0; lanes /= 2) {
      state = Op::of(state, from_lane(state, lanes));
    }
    return state;
  }
}

// Of the parts of a row, one for each warp, for each thread.
template <class Op, class Part>
CUTE_DEVICE
typename Op::State
of_parts(Part const& sPart)
{
  constexpr int Parts = RowCtas * RowWarps;
  constexpr int Lanes = Parts < 32 ? Parts : 32;
  auto const own = sPart(threadIdx.x / RowThreads, _);  // (WARPS)
  auto state = own(threadIdx.x % Lanes);
  CUTE_UNROLL
  for (int part = Lanes; part < Parts; part += Lanes) {
    state = Op::of(state, own(threadIdx.x % Lanes + part));
  }
  return of_lanes<Op, Lanes>(state);
}

{% if d.schedule.cluster > 1 %}{% include "rows/cluster.cuh" %}{% else %}{% include "rows/cta.cuh" %}{% endif %}