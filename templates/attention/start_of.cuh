// A start among `starts`, clamped to the rows that there are.
CUTE_DEVICE
int
start_of(void const* starts, int number, int rows)
{
  return cute::max(0, cute::min(static_cast<int const*>(starts)[number], rows));
}