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

// A warp tells its part of a row to the warps of the row, in all CTAs.
template <class Part, class State>
CUTE_DEVICE
void
tell(Part&& sPart, State const& state)
{
  int const lane = threadIdx.x % 32;
  if constexpr (RowCtas > 1) {
    if (lane < RowCtas) {
      *in_cta(&sPart(_0{}, int(blockIdx.x) % RowCtas * RowWarps + int(threadIdx.x) / 32), lane) = state;
    }
  } else if (lane == 0) {
    sPart(threadIdx.x / RowThreads, threadIdx.x % RowThreads / 32) = state;
  }
}

// Waits until all warps have told theirs.
CUTE_DEVICE
void
meet()
{
  if constexpr (RowCtas > 1) {
    cluster_arrive();
    cluster_wait();
  } else {
    __syncthreads();
  }
}
