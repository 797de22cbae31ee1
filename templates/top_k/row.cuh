// The K-th largest of what the threads have: at least K elements of the row are as large.
CUTE_DEVICE
uint32_t
bound_of(Shared& shared, uint32_t largest)
{
  uint32_t const own = larger_of(shared.largest, Threads, largest) < K ? largest : ~0u;
  uint32_t const least = __reduce_min_sync(~0u, own);
  if (threadIdx.x % 32 == 0) {
    atomicMin(&shared.bound, least);
  }
  __syncthreads();
  return shared.bound;
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
  Tensor rOrder = make_fragment_like<uint32_t>(rX);  // (CPY,CPY_M,CHUNKS)

  uint64_t limit = 0;
  int kept = 0;
  for (int tile = 0; tile < ceil_div(params.n, size<1>(Tile{})); ++tile) {
    auto const inside = [&](int v, int c) { return get<1>(tcX(Walk::whole ? 0 : v, _0{}, c, tile)) < params.n; };
    move_all<Walk, typename Walk::LoadX>(inside, tX(_, _, _, tile), rX);
    uint32_t largest = 0;
    CUTE_UNROLL
    for (int c = 0; c < size<2>(rX); ++c) {
      CUTE_UNROLL
      for (int v = 0; v < size<0>(rX); ++v) {
        rOrder(v, _0{}, c) = inside(v, c) ? order_of(rX(v, _0{}, c)) : 0;
        largest = max(largest, rOrder(v, _0{}, c));
      }
    }
    shared.largest[threadIdx.x] = largest;
    if (threadIdx.x == 0) {
      shared.count = kept;
      shared.bound = ~0u;
    }
    __syncthreads();
    if (tile == 0) {
      limit = uint64_t(bound_of(shared, largest)) << 32;
    }

    uint32_t const least = max(uint32_t(limit >> 32), 1u);
    auto const counts = [&](int v, int c) {
      uint32_t const order = rOrder(v, _0{}, c);
      return order >= least && candidate(order, get<1>(tcX(v, _0{}, c, tile))) > limit;
    };
    if (largest >= least) {
      int own = 0;
      CUTE_UNROLL
      for (int c = 0; c < size<2>(rX); ++c) {
        CUTE_UNROLL
        for (int v = 0; v < size<0>(rX); ++v) {
          own += counts(v, c) ? 1 : 0;
        }
      }
      int at = own > 0 ? atomicAdd(&shared.count, own) : 0;
      CUTE_UNROLL
      for (int c = 0; c < size<2>(rX); ++c) {
        CUTE_UNROLL
        for (int v = 0; v < size<0>(rX); ++v) {
          if (counts(v, c)) {
            if (at < 2 * Threads) {
              shared.candidates[at] = candidate(rOrder(v, _0{}, c), get<1>(tcX(v, _0{}, c, tile)));
            }
            ++at;
          }
        }
      }
    }
    __syncthreads();
    int const n = shared.count;
    __syncthreads();
    if (n > 2 * Threads) {
      int const begin = tile * size<1>(Tile{});
      int const end = min(begin + size<1>(Tile{}), params.n);
      kept = keep_in_turns(shared, mX(row, _), begin, end, kept, limit);
    } else if (n > kept) {
      kept = keep(shared, n);
    }
    limit = kept == K ? shared.candidates[K - 1] : limit;
  }
  if (threadIdx.x < K) {
    int const column = column_of(shared.candidates[threadIdx.x]);
    mValues(row, int(threadIdx.x)) = mX(row, column);
    mIndices(row, int(threadIdx.x)) = column;
  }
}
