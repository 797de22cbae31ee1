// A warp tells its part of a row to the warps of the row.
template <class Part, class State>
CUTE_DEVICE
void
tell(Part&& sPart, State const& state)
{
  if (threadIdx.x % 32 == 0) {
    sPart(threadIdx.x / RowThreads, threadIdx.x % RowThreads / 32) = state;
  }
}
