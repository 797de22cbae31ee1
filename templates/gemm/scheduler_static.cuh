
  int tiles;  // all of them
  int index;

  // Of this CTA.
  CUTE_DEVICE
  Scheduler(Params const& params, int)
    : params(params),
      rank_m(blockIdx.x % size<0>(Cluster{})),
      rank_n(blockIdx.x % size(Cluster{}) / size<0>(Cluster{})),
      rank_k(blockIdx.x % ctas / size(Cluster{})),
      tiles(all_tiles()),
      index(blockIdx.x / ctas)
  {}

  CUTE_DEVICE
  bool
  has_tile() const
  {
    return index < tiles;
  }

  CUTE_DEVICE
  void
  advance(int turns = 1)
  {
    index += turns * (gridDim.x / ctas);
  }
{% include "gemm/scheduler_k_range.cuh" %}

  CUTE_DEVICE
  auto
  crd() const
  {
    return crd(index);
  }
