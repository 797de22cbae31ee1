// What the threads of a row tell each other.
struct Shared {
  alignas(16) uint32_t largest[Threads];
  alignas(16) uint64_t candidates[2 * Threads];
  uint32_t bound;
  int count;
};

// How many of the first n are larger.
template <class T>
CUTE_DEVICE
int
larger_of(T const* all, int n, T own)
{
  int larger = 0;
  #pragma unroll 8
  for (int i = 0; i < n; ++i) {
    larger += all[i] > own ? 1 : 0;
  }
  return larger;
}

// Sorts n candidates, and keeps K of them at most.
CUTE_DEVICE
int
keep(Shared& shared, int n)
{
  uint64_t own[2];
  int place[2];
  CUTE_UNROLL
  for (int j = 0; j < 2; ++j) {
    int const i = int(threadIdx.x) + j * Threads;
    own[j] = i < n ? shared.candidates[i] : 0;
    place[j] = i < n ? larger_of(shared.candidates, n, own[j]) : K;
  }
  __syncthreads();
  CUTE_UNROLL
  for (int j = 0; j < 2; ++j) {
    if (place[j] < K) {
      shared.candidates[place[j]] = own[j];
    }
  }
  __syncthreads();
  return n < K ? n : K;
}

// Candidates of columns from `begin` to `end` that have no room together: a column for each thread at a time.
template <class Row>
CUTE_DEVICE
int
keep_in_turns(Shared& shared, Row const& mRow, int begin, int end, int kept, uint64_t limit)
{
  int n = kept;
  if (threadIdx.x == 0) {
    shared.count = kept;
  }
  __syncthreads();
  for (int first = begin; first < end; first += Threads) {
    int const column = first + int(threadIdx.x);
    uint64_t const own = column < end ? candidate(order_of(mRow(column)), column) : 0;
    if (own > limit) {
      shared.candidates[atomicAdd(&shared.count, 1)] = own;
    }
    __syncthreads();
    n = shared.count;
    __syncthreads();
    if (n > Threads) {
      n = keep(shared, n);
      limit = n == K ? shared.candidates[K - 1] : limit;
      if (threadIdx.x == 0) {
        shared.count = n;
      }
      __syncthreads();
    }
  }
  return keep(shared, n);
}
