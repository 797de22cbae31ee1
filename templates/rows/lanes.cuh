// Of as many lanes side by side, for each of them.
template <class Op, int Lanes>
CUTE_DEVICE
typename Op::State
of_lanes(typename Op::State state)
{
  CUTE_UNROLL
  for (int lanes = Lanes / 2; lanes > 0; lanes /= 2) {
    state = Op::of(state, from_lane(state, lanes));
  }
  return state;
}
{% if !exchanged.is_empty() %}
// Of the parts of a row, one for each warp, for each thread.
template <class Op, int Parts, class Part>
CUTE_DEVICE
typename Op::State
of_parts(Part const& sPart)
{
  constexpr int Lanes = Parts < 32 ? Parts : 32;
  auto state = sPart(threadIdx.x % Lanes);
  CUTE_UNROLL
  for (int part = Lanes; part < Parts; part += Lanes) {
    state = Op::of(state, sPart(threadIdx.x % Lanes + part));
  }
  return of_lanes<Op, Lanes>(state);
}
{% endif %}{% if d.schedule.cluster > 1 %}
// The same place in the shared memory of another CTA of the cluster.
template <class T>
CUTE_DEVICE
T*
in_cta(T* own, uint32_t rank)
{
  uint64_t other;
  asm volatile("mapa.u64 %0, %1, %2;" : "=l"(other) : "l"(own), "r"(rank));
  return reinterpret_cast<T*>(other);
}
{% endif %}