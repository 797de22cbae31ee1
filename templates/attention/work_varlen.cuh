// A start among `starts`, clamped to the rows that there are.
CUTE_DEVICE
int
start_of(void const* starts, int number, int rows)
{
  return cute::max(0, cute::min(static_cast<int const*>(starts)[number], rows));
}

// Sequence i lies between starts i - 1 and i. Sequence 0 and the last one are what lies outside: they have no keys. Starts that go
// back are taken for the furthest so far, so that no two sequences share rows. A warp looks at 32 sequences at a time.
CUTE_DEVICE
int
most_tiles(Params const& params)
{
  return params.tq / size<0>(TileQ{}) + params.starts + 1;
}

CUTE_DEVICE
int
works(Params const& params)
{
  return most_tiles(params) * params.hq;
}

CUTE_DEVICE
Work
work_of(Params const& params, int index)
{
  auto const [number, head] = idx2crd(index, make_shape(most_tiles(params), params.hq));
  int const group = head / (params.hq / params.hk);
  int const lane  = threadIdx.x % 32;
  int ahead = 0;  // tiles of earlier sequences
  int begin = 0;  // where earlier sequences end
  for (int first = 0; first <= params.starts; first += 32) {
    int const sequence = first + lane;
    int end = sequence < params.starts ? start_of(params.startsq, sequence, params.tq) : params.tq;
    end = cute::max(begin, end);
    CUTE_UNROLL
    for (int lanes = 1; lanes < 32; lanes *= 2) {
      int const earlier = __shfl_up_sync(0xffffffff, end, lanes);
      end = lane < lanes ? end : cute::max(end, earlier);
    }
    int const before = __shfl_up_sync(0xffffffff, end, 1);
    int const own    = lane == 0 ? begin : before;
    int const tiles  = sequence <= params.starts ? ceil_div(end - own, size<0>(TileQ{})) : 0;
    int through = tiles;
    CUTE_UNROLL
    for (int lanes = 1; lanes < 32; lanes *= 2) {
      int const earlier = __shfl_up_sync(0xffffffff, through, lanes);
      through += lane < lanes ? 0 : earlier;
    }
    unsigned const found = __ballot_sync(0xffffffff, number < ahead + through);
    if (found != 0) {
      int const by    = __ffs(found) - 1;
      int const at    = first + by;
      int const at_q  = __shfl_sync(0xffffffff, own, by);
      int const len_q = __shfl_sync(0xffffffff, end, by) - at_q;
      int const tile  = number - ahead - __shfl_sync(0xffffffff, through - tiles, by);
      bool const has_keys = at > 0 && at < params.starts;
      int const at_k  = has_keys ? start_of(params.startsk, at - 1, params.tk) : 0;
      int const end_k = has_keys ? start_of(params.startsk, at, params.tk) : 0;
      Place const keys{at_k, group};
      int const of_sequence = ceil_div(len_q, size<0>(TileQ{}));
      int const first_q = first_query(tile, of_sequence);
      return {{at_q, head}, keys, keys, first_q, len_q, cute::max(0, end_k - at_k), at - 1};
    }
    ahead += __shfl_sync(0xffffffff, through, 31);
    begin  = __shfl_sync(0xffffffff, end, 31);
  }
  return {};  // fewer tiles than CTAs
}
