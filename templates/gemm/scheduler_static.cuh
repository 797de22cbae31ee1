{%- let [first, trips] = c.k_range() %}
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

  // This CTA's first k-tile of a tile, and its number of k-tiles. With split-K, the CTAs of a tile share its k-tiles.
  CUTE_DEVICE
  int
  first_k_tile(int of_tile) const
  {
    return [[ first ]];
  }

  CUTE_DEVICE
  int
  k_tiles(int of_tile) const
  {
    return [[ trips ]];
  }

  CUTE_DEVICE
  auto
  crd() const
  {
    return crd(index);
  }
