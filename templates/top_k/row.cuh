// A lower bound of the K-th largest of the row: each full warp has K / warps elements that are as large.
// A warp's threads name one each: where K is more than all of them have, there is no bound.
CUTE_DEVICE
uint32_t
bound_of(Shared& shared, uint32_t largest, int full)
{
  int const warp = int(threadIdx.x) / 32;
  int const place = full == Warps ? (K - 1) / Warps : full > 0 ? (K - 1) / full : 32;
  full = place < 32 ? full : 0;
  uint32_t const own = sorted(largest);
  if (warp < full && int(threadIdx.x) % 32 == place) {
    shared.bounds[warp] = own;
  }
  __syncthreads();
  uint32_t bound = full > 0 ? ~0u : 1;
  CUTE_UNROLL
  for (int i = 0; i < Warps; ++i) {
    bound = i < full ? min(bound, shared.bounds[i]) : bound;
  }
  return bound;
}

// This thread has `own` candidates: the place of the first, behind those of other threads.
CUTE_DEVICE
int
first_place(Shared& shared, int own)
{
  int const lane = int(threadIdx.x) % 32;
  int up_to = own;
  CUTE_UNROLL
  for (int distance = 1; distance < 32; distance *= 2) {
    int const below = __shfl_up_sync(~0u, up_to, distance);
    up_to += lane >= distance ? below : 0;
  }
  int first = lane == 31 ? atomicAdd(&shared.count, up_to) : 0;
  first = __shfl_sync(~0u, first, 31);
  return first + up_to - own;
}

// Columns of elements above the limit become candidates. Few are: each has a bit.
template <class Inside, class Values, class Columns>
CUTE_DEVICE
void
add(Shared& shared, Inside const& inside, Values const& rX, Columns const& tcX, uint32_t above)
{
  constexpr int Words = ceil_div(size(Values{}), 32);
  float const least = number_of(min(above + 1, Infinity));
  uint32_t hits[Words] = {};
  CUTE_UNROLL
  for (int i = 0; i < size(rX); ++i) {
    bool const hit = inside(i % size<0>(rX), i / size<0>(rX)) && !(number_of(rX(i)) < least);
    hits[i / 32] |= hit ? 1u << i % 32 : 0u;
  }
  int own = 0;
  CUTE_UNROLL
  for (int word = 0; word < Words; ++word) {
    own += __popc(hits[word]);
  }
  int at = first_place(shared, own);
  CUTE_UNROLL
  for (int word = 0; word < Words; ++word) {
    for (uint32_t left = hits[word]; left != 0 && at < 2 * Threads; left &= left - 1) {
      shared.columns[at++] = get<1>(tcX(32 * word + __ffs(int(left)) - 1));
    }
  }
}

// A row, tile by tile: elements beyond the limit become candidates, of which K are kept.
template <class Walk>
CUTE_DEVICE
void
choose([[ plan.name() ]]_params const& params)
{
  assert_ieee();
  __shared__ Shared shared;
  auto const shape = make_shape(params.m, params.n);
  auto const results = make_shape(params.m, Int<K>{});
  auto const ptr_x = make_gmem_ptr(static_cast<Element const*>(params.x));
  Tensor mX = make_tensor(ptr_x, shape, make_stride(params.x_stride0, _1{}));  // (M,N)
  auto const ptr_values = make_gmem_ptr(static_cast<Element*>(params.values));
  Tensor mValues = make_tensor(ptr_values, results, make_stride(params.values_stride0, _1{}));  // (M,K)
  auto const ptr_indices = make_gmem_ptr(static_cast<int*>(params.indices));
  Tensor mIndices = make_tensor(ptr_indices, results, make_stride(params.indices_stride0, _1{}));  // (M,K)

  int const row = int(blockIdx.x);
  auto const thr = typename Walk::LoadX{}.get_slice(threadIdx.x);
  Tensor tX = thr.partition_S(local_tile(mX, Tile{}, make_coord(row, _)));  // (CPY,CPY_M,CHUNKS,TILES)
  Tensor tcX = thr.partition_S(local_tile(make_identity_tensor(shape), Tile{}, make_coord(row, _)));  // (CPY,CPY_M,CHUNKS,TILES)
  Tensor rX = make_fragment_like(tX(_, _, _, _0{}));  // (CPY,CPY_M,CHUNKS)

  uint32_t above = 0;
  int kept = 0;
  for (int tile = 0; tile < ceil_div(params.n, size<1>(Tile{})); ++tile) {
    auto const inside = [&](int v, int c) { return get<1>(tcX(Walk::whole ? 0 : v, _0{}, c, tile)) < params.n; };
    fill(rX, Element(-INFINITY));
    move_all<Walk, typename Walk::LoadX>(inside, tX(_, _, _, tile), rX);
    uint32_t const largest = order_of(largest_of(rX));
    if (threadIdx.x == 0) {
      shared.count = kept;
    }
    if (tile == 0) {
      above = bound_of(shared, largest, min(params.n / (32 * int(size<0>(rX))), Warps)) - 1;
    } else {
      __syncthreads();
    }
    if (__any_sync(~0u, largest > above)) {
      add(shared, inside, rX, tcX(_, _, _, tile), above);
    }
    __syncthreads();
    int n = shared.count;
    __syncthreads();
    bool const in_turns = n > 2 * Threads;
    int first = tile * size<1>(Tile{});
    int const end = min(first + size<1>(Tile{}), params.n);
    do {
      if (in_turns) {
        if (threadIdx.x == 0) {
          shared.count = kept;
        }
        __syncthreads();
        add_columns(shared, mX(row, _), first, end, above);
        __syncthreads();
        n = shared.count;
        __syncthreads();
        first += Threads;
      }
      if (n > kept) {
        kept = keep(shared, mX(row, _), n);
        above = kept == K ? shared.limit : above;
      }
    } while (in_turns && first < end);
  }
  if (threadIdx.x < K) {
    int const column = shared.columns[threadIdx.x];
    mValues(row, int(threadIdx.x)) = mX(row, column);
    mIndices(row, int(threadIdx.x)) = column;
  }
}
