
  int index;      // a cluster's tile, counted over the groups
  int group = 0;  // the group that it is of
  int ahead = 0;  // tiles of earlier groups
  int begin = 0;  // the group's first row in A and D
  int rows  = 0;  // of the group

  // Of this CTA. All lanes of a warp have the same.
  CUTE_DEVICE
  Scheduler(Params const& params, int)
    : params(params),
      rank_m(blockIdx.x % size<0>(Cluster{})),
      rank_n(blockIdx.x % size(Cluster{}) / size<0>(Cluster{})),
      rank_k(blockIdx.x % ctas / size(Cluster{})),
      index(blockIdx.x / ctas)
  {
{%- match c.overlaps() %}
{%- when true %}
    cudaGridDependencySynchronize();  // PDL: the kernel before this one may write where groups end
{%- when false %}
{%- endmatch %}
    find();
  }

  CUTE_DEVICE
  bool
  has_tile() const
  {
    return group < params.l;
  }

  CUTE_DEVICE
  void
  advance(int turns = 1)
  {
    index += turns * (gridDim.x / ctas);
    find();
  }

  // Where a group ends, or how many rows it has: inside of the matrix, whatever memory says.
  CUTE_DEVICE
  int
  end_of(int group) const
  {
    int const end = group < params.l ? static_cast<int const*>(params.[[ c.ends() ]])[group] : 0;
    return cute::max(0, cute::min(end, params.m));
  }

  // Tiles of a group with so many rows.
  CUTE_DEVICE
  int
  tiles_of(int rows) const
  {
    int const clusters_m = ceil_div(rows, size<0>(TileD{}) * size<0>(Cluster{}));
    int const clusters_n = this->clusters_n();
    return [[ c.pieces() ]];
  }

  // Finds the group of tile `index`: this one or a later one. A warp looks at 32 groups at a time. Groups that follow each other
  // begin where the one before ends, and end no earlier, so that no two share rows.
  CUTE_DEVICE
  void
  find()
  {
    int const lane = threadIdx.x % 32;
    for (; group < params.l; group += 32) {
      int end = end_of(group + lane);
      int first = 0;
      if constexpr (follow) {
        end = cute::max(begin, end);
        end = scan(end, [](int a, int b) { return cute::max(a, b); });
        first = __shfl_up_sync(~0u, end, 1);
        first = lane == 0 ? begin : first;
      }
      int const tiles   = tiles_of(end - first);
      int const through = ahead + scan(tiles, [](int a, int b) { return a + b; });
      unsigned const found = __ballot_sync(~0u, index < through);
      int const by = found != 0 ? __ffs(found) - 1 : 31;
      begin = __shfl_sync(~0u, found != 0 ? first : end, by);
      ahead = __shfl_sync(~0u, found != 0 ? through - tiles : through, by);
      if (found != 0) {
        group += by;
        rows = __shfl_sync(~0u, end, by) - begin;
        return;
      }
    }
  }
{% include "gemm/scheduler_k_range.cuh" %}

  CUTE_DEVICE
  auto
  crd() const
  {
    return crd(index - ahead);
  }
