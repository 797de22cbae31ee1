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
{%- if c.splits() %}
    int const rows   = (end - own) * group_of(params);
    int const tiles  = sequence <= params.starts ? ceil_div(rows, size<0>(TileQ{})) : 0;
{%- else %}
    int const tiles  = sequence <= params.starts ? ceil_div(end - own, size<0>(TileQ{})) : 0;
{%- endif %}
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
[[ c.found ]]
    }
    ahead += __shfl_sync(0xffffffff, through, 31);
    begin  = __shfl_sync(0xffffffff, end, 31);
  }
  return {};  // fewer tiles than CTAs