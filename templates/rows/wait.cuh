// Waits until all but so many of the last tiles have arrived.
template <int Most>
CUTE_DEVICE
void
wait_for(int pending)
{
  if constexpr (Most > 0) {
    if (pending < Most) {
      return wait_for<Most - 1>(pending);
    }
  }
  cp_async_wait<Most>();
}
