// Primitives of CUB, each on the tile of a block: THREADS x ITEMS elements, a blocked arrangement unless said. What a kernel
// writes begins at its block's tile, and a second result lies behind the first results of all blocks.
#include <cub/block/block_shuffle.cuh>
#include <cub/cub.cuh>

struct Less {
  template <class T>
  __device__ bool operator()(T const& a, T const& b) const { return a < b; }
};

struct Larger {
  template <class T>
  __device__ T operator()(T const& a, T const& b) const { return a < b ? b : a; }
};

struct Differs {
  template <class T>
  __device__ bool operator()(T const& a, T const& b) const { return a != b; }
};

struct Minus {
  template <class T>
  __device__ T operator()(T const& a, T const& b) const { return a - b; }
};

template <class T, int ITEMS>
__device__ void get(T (&items)[ITEMS], T const* in) {
  for (int i = 0; i < ITEMS; ++i) items[i] = in[(blockIdx.x * blockDim.x + threadIdx.x) * ITEMS + i];
}

template <class T, int ITEMS>
__device__ void put(T const (&items)[ITEMS], T* out, int which = 0) {
  int first = ((which * gridDim.x + blockIdx.x) * blockDim.x + threadIdx.x) * ITEMS;
  for (int i = 0; i < ITEMS; ++i) out[first + i] = items[i];
}

template <class T, int THREADS, int ITEMS, cub::BlockReduceAlgorithm ALGORITHM>
__device__ void reduce(T const* in, T* out) {
  using Reduce = cub::BlockReduce<T, THREADS, ALGORITHM>;
  __shared__ typename Reduce::TempStorage storage;
  T items[ITEMS];
  get(items, in);
  T sum = Reduce(storage).Sum(items);
  __syncthreads();
  T most = Reduce(storage).Reduce(items, Larger{});
  __syncthreads();
  T some = Reduce(storage).Sum(items[0], THREADS - 5);
  if (threadIdx.x == 0) {
    out[blockIdx.x] = sum;
    out[gridDim.x + blockIdx.x] = most;
    out[2 * gridDim.x + blockIdx.x] = some;
  }
}

template <class T>
struct Running {
  T total;
  __device__ T operator()(T aggregate) {
    T before = total;
    total += aggregate;
    return before;
  }
};

template <class T, int THREADS, int ITEMS, cub::BlockScanAlgorithm ALGORITHM>
__device__ void scan(T const* in, T* out) {
  using Scan = cub::BlockScan<T, THREADS, ALGORITHM>;
  __shared__ typename Scan::TempStorage storage;
  T items[ITEMS], sums[ITEMS];
  get(items, in);
  Running<T> running{T(1)};
  Scan(storage).InclusiveSum(items, sums, running);
  put(sums, out);
  __syncthreads();
  Scan(storage).ExclusiveScan(items, sums, T(7), Larger{});
  put(sums, out, 1);
}

template <class T, int THREADS, int ITEMS, bool DESCENDING>
__device__ void radix_sort(T const* in, T* out) {
  using Sort = cub::BlockRadixSort<T, THREADS, ITEMS, T>;
  __shared__ typename Sort::TempStorage storage;
  T keys[ITEMS], places[ITEMS];
  get(keys, in);
  for (int i = 0; i < ITEMS; ++i) places[i] = T(threadIdx.x * ITEMS + i);
  if (DESCENDING) {
    Sort(storage).SortDescending(keys, places);
  } else {
    Sort(storage).Sort(keys, places);
  }
  put(keys, out);
  put(places, out, 1);
}

template <class T, int THREADS, int ITEMS>
__device__ void merge_sort(T const* in, T* out) {
  using Sort = cub::BlockMergeSort<T, THREADS, ITEMS, T>;
  __shared__ typename Sort::TempStorage storage;
  T keys[ITEMS], places[ITEMS];
  get(keys, in);
  for (int i = 0; i < ITEMS; ++i) places[i] = T(threadIdx.x * ITEMS + i);
  Sort(storage).StableSort(keys, places, Less{});
  put(keys, out);
  put(places, out, 1);
}

template <class T, int THREADS, int ITEMS, bool SLICES>
__device__ void exchange(T const* in, T* out) {
  using Exchange = cub::BlockExchange<T, THREADS, ITEMS, SLICES>;
  __shared__ typename Exchange::TempStorage storage;
  T items[ITEMS], turned[ITEMS];
  int ranks[ITEMS];
  get(items, in);
  Exchange(storage).BlockedToStriped(items, turned);
  put(turned, out);
  __syncthreads();
  Exchange(storage).StripedToBlocked(items, turned);
  put(turned, out, 1);
  __syncthreads();
  for (int i = 0; i < ITEMS; ++i) ranks[i] = THREADS * ITEMS - 1 - (threadIdx.x * ITEMS + i);
  Exchange(storage).ScatterToBlocked(items, turned, ranks);
  put(turned, out, 2);
  __syncthreads();
  Exchange(storage).BlockedToWarpStriped(items, turned);
  __syncthreads();
  Exchange(storage).WarpStripedToBlocked(turned, turned);
  put(turned, out, 3);
}

template <class T, int THREADS, int ITEMS, cub::BlockHistogramAlgorithm ALGORITHM>
__device__ void histogram(T const* in, T* out) {
  constexpr int BINS = 64;
  using Histogram = cub::BlockHistogram<T, THREADS, ITEMS, BINS, ALGORITHM>;
  __shared__ typename Histogram::TempStorage storage;
  __shared__ T bins[BINS];
  T items[ITEMS];
  get(items, in);
  Histogram(storage).Histogram(items, bins);
  __syncthreads();
  for (int i = threadIdx.x; i < BINS; i += THREADS) out[blockIdx.x * BINS + i] = bins[i];
}

template <class T, int THREADS, int WIDTH>
__device__ void warp_reduce(T const* in, T* out) {
  using Reduce = cub::WarpReduce<T, WIDTH>;
  __shared__ typename Reduce::TempStorage storage[THREADS / WIDTH];
  T items[1];
  get(items, in);
  int warp = threadIdx.x / WIDTH;
  T sum = Reduce(storage[warp]).Sum(items[0]);
  __syncthreads();
  T part = Reduce(storage[warp]).HeadSegmentedSum(items[0], threadIdx.x % 3 == 0);
  int at = blockIdx.x * THREADS + threadIdx.x;
  if (threadIdx.x % WIDTH == 0) out[at] = sum;
  if (threadIdx.x % WIDTH == 0 || threadIdx.x % 3 == 0) out[gridDim.x * THREADS + at] = part;
}

template <class T, int THREADS, int WIDTH>
__device__ void warp_scan(T const* in, T* out) {
  using Scan = cub::WarpScan<T, WIDTH>;
  __shared__ typename Scan::TempStorage storage[THREADS / WIDTH];
  T items[1], result[1];
  get(items, in);
  int warp = threadIdx.x / WIDTH;
  Scan(storage[warp]).InclusiveSum(items[0], result[0]);
  put(result, out);
  __syncthreads();
  Scan(storage[warp]).ExclusiveScan(items[0], result[0], T(7), Larger{});
  put(result, out, 1);
  __syncthreads();
  result[0] = Scan(storage[warp]).Broadcast(items[0], WIDTH - 1);
  put(result, out, 2);
}

template <class T, int THREADS, int ITEMS, int WIDTH>
__device__ void warp_sort(T const* in, T* out) {
  using Sort = cub::WarpMergeSort<T, ITEMS, WIDTH>;
  using Exchange = cub::WarpExchange<T, ITEMS, WIDTH>;
  __shared__ typename Sort::TempStorage storage[THREADS / WIDTH];
  __shared__ typename Exchange::TempStorage room[THREADS / WIDTH];
  T items[ITEMS];
  get(items, in);
  int warp = threadIdx.x / WIDTH;
  Sort(storage[warp]).Sort(items, Less{});
  put(items, out);
  Exchange(room[warp]).BlockedToStriped(items, items);
  put(items, out, 1);
}

template <class T, int THREADS, int ITEMS, cub::BlockLoadAlgorithm LOAD, cub::BlockStoreAlgorithm STORE>
__device__ void load_store(T const* in, T* out) {
  using Load = cub::BlockLoad<T, THREADS, ITEMS, LOAD>;
  using Store = cub::BlockStore<T, THREADS, ITEMS, STORE>;
  __shared__ union {
    typename Load::TempStorage load;
    typename Store::TempStorage store;
  } storage;
  T items[ITEMS];
  int tile = blockIdx.x * THREADS * ITEMS, all = gridDim.x * THREADS * ITEMS;
  Load(storage.load).Load(in + tile, items);
  __syncthreads();
  Store(storage.store).Store(out + tile, items);
  __syncthreads();
  Load(storage.load).Load(in + tile, items, THREADS * ITEMS - 5, T(9));
  __syncthreads();
  Store(storage.store).Store(out + all + tile, items, THREADS * ITEMS - 3);
}

template <class T, int THREADS, int ITEMS>
__device__ void neighbours(T const* in, T* out) {
  using Flags = cub::BlockDiscontinuity<T, THREADS>;
  using Difference = cub::BlockAdjacentDifference<T, THREADS>;
  using Shuffle = cub::BlockShuffle<T, THREADS>;
  __shared__ union {
    typename Flags::TempStorage flags;
    typename Difference::TempStorage difference;
    typename Shuffle::TempStorage shuffle;
  } storage;
  T items[ITEMS], result[ITEMS];
  get(items, in);
  Flags(storage.flags).FlagHeads(result, items, Differs{});
  put(result, out);
  __syncthreads();
  Difference(storage.difference).SubtractLeft(items, result, Minus{});
  put(result, out, 1);
  __syncthreads();
  for (int i = 0; i < ITEMS; ++i) {
    Shuffle(storage.shuffle).Rotate(items[i], result[i], 3);
    __syncthreads();
  }
  put(result, out, 2);
}
