// What the threads of a row tell each other. First come the columns that were kept, in order.
struct Shared {
  int columns[2 * Threads];
  alignas(8) uint64_t lists[2 * Threads];
  uint32_t bounds[Warps];
  uint32_t limit;
  int count;
};

// The values of a warp in descending order, by a bitonic network: lists of two become lists of four, and so on.
template <class T>
CUTE_DEVICE
T
sorted(T own)
{
  int const lane = int(threadIdx.x) % 32;
  CUTE_UNROLL
  for (int half = 1; half < 32; half *= 2) {
    CUTE_UNROLL
    for (int distance = half; distance > 0; distance /= 2) {
      // The first step compares a list with the reverse of the next one.
      T const other = __shfl_xor_sync(~0u, own, distance == half ? 2 * half - 1 : distance);
      own = ((lane & distance) == 0) == (own > other) ? own : other;
    }
  }
  return own;
}

// How many of 32 values in descending order are larger.
CUTE_DEVICE
int
larger_of(uint64_t const* values, uint64_t own)
{
  int larger = 0;
  CUTE_UNROLL
  for (int step = 16; step > 0; step /= 2) {
    larger += values[larger + step - 1] > own ? step : 0;
  }
  return larger + (values[larger] > own ? 1 : 0);
}

// Sorts the candidates of n columns, and keeps the columns of K at most: each warp sorts 32 at a time, and each value looks
// for its place in the lists of others.
template <class Row>
CUTE_DEVICE
int
keep(Shared& shared, Row const& mRow, int n)
{
  int const lists = ceil_div(n, 32);
  int const warp = int(threadIdx.x) / 32;
  uint64_t own[2] = {};
  CUTE_UNROLL
  for (int j = 0; j < 2; ++j) {
    int const i = int(threadIdx.x) + j * Threads;
    if (warp + j * Warps < lists) {
      int const column = i < n ? shared.columns[i] : 0;
      own[j] = sorted(i < n ? candidate(order_of(number_of(mRow(column))), column) : 0);
      shared.lists[i] = own[j];
    }
  }
  __syncthreads();
  int const kept = n < K ? n : K;
  CUTE_UNROLL
  for (int j = 0; j < 2; ++j) {
    int const list = warp + j * Warps;
    if (list < lists) {
      int place = int(threadIdx.x) % 32;
      #pragma unroll 4
      for (int other = 0; other < lists; ++other) {
        place += other != list ? larger_of(shared.lists + 32 * other, own[j]) : 0;
      }
      if (place < kept) {
        shared.columns[place] = column_of(own[j]);
      }
      if (place == K - 1) {
        shared.limit = order_of(own[j]);
      }
    }
  }
  __syncthreads();
  return kept;
}

// A column for each thread, from `first` on, where candidates have no room together.
template <class Row>
CUTE_DEVICE
void
add_columns(Shared& shared, Row const& mRow, int first, int end, uint32_t above)
{
  int const column = first + int(threadIdx.x);
  if (column < end && order_of(number_of(mRow(column))) > above) {
    shared.columns[atomicAdd(&shared.count, 1)] = column;
  }
}
