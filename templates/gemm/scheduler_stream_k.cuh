
  int index;       // tile that this cluster computes alone; from params.whole on, tiles are shared
  int cluster;
  int shared = 0;  // shared tile that this cluster works on
  int k_tile = 0;  // its first k-tile there
  int left = 0;    // k-tiles that it still has to compute, in this tile and the following ones

  CUTE_DEVICE
  Scheduler(Params const& params, int cta)
    : params(params),
      rank_m(cta % size<0>(Cluster{})),
      rank_n(cta % size(Cluster{}) / size<0>(Cluster{})),
      rank_k(0),
      index(cta / ctas),
      cluster(index)
  {
    int const all = shared_tiles();
    if (all == 0) {
      return;
    }
    int const rest = k_tiles_of_one() - first_of_rest();
    if (!takes_rests()) {
      // Neighbouring clusters take the same k-tiles of neighbouring tiles.
      shared = cluster % all;
      k_tile = cluster / all * params.k_share;
      left = cute::max(cute::min(params.k_share, k_tiles_of_one() - k_tile), 0);
    } else if (rest > 0) {
      int64_t const begin = int64_t(cluster - params.k_parts * all) * params.k_share;
      left = int(cute::max(cute::min(int64_t(params.k_share), int64_t(all) * rest - begin), int64_t(0)));
      shared = int(begin / rest);
      k_tile = first_of_rest() + int(begin % rest);
    }
  }

  CUTE_DEVICE
  bool
  has_tile() const
  {
    return index < params.whole || left > 0;
  }

  // Whether this cluster computes only some k-tiles of the tile.
  CUTE_DEVICE
  bool
  is_shared() const
  {
    return index >= params.whole;
  }

  CUTE_DEVICE
  void
{%- if c.finds_anew() %}
  advance(int turns)
  {
    int const whole = cute::min(turns, ceil_div(cute::max(params.whole - index, 0), int(gridDim.x)));
    index += whole * gridDim.x;
    turns -= whole;
    if (turns > 0) {
      // After its first share, a cluster takes rests.
      left -= k_tiles() + (turns - 1) * (k_tiles_of_one() - first_of_rest());
      shared += turns;
      k_tile = first_of_rest();
    }
  }
{%- else %}
  advance(int = 1)
  {
    if (is_shared()) {
      left -= k_tiles();
      shared += 1;
      k_tile = first_of_rest();
    } else {
      index += gridDim.x / ctas;
    }
  }
{%- endif %}

  // This cluster's first k-tile of the tile, and its number of k-tiles. Those of a whole tile are counted anew, not held in a
  // register.
  CUTE_DEVICE
  int
  first_k_tile(int = 0) const
  {
    return is_shared() ? k_tile : 0;
  }

  CUTE_DEVICE
  int
  k_tiles(int = 0) const
  {
    return is_shared() ? cute::min(left, k_tiles_of_one() - k_tile) : k_tiles_of_one();
  }

  // Index of this cluster's partial sums in the workspace. Consecutive rests differ in the cluster or in the tile.
  CUTE_DEVICE
  int
  part() const
  {
    return takes_rests() ? cluster + shared : cluster;
  }

  CUTE_DEVICE
  int
  k_tiles_of_one() const
  {
    return ceil_div(anew(params.k), size<1>(TileA{}));
  }

  CUTE_DEVICE
  int
  shared_tiles() const
  {
    return all_tiles() - params.whole;
  }

  // First k-tile of a shared tile's rest. Clusters take the rests of all shared tiles one after the other.
  CUTE_DEVICE
  int
  first_of_rest() const
  {
    return cute::min(params.k_parts * params.k_share, k_tiles_of_one());
  }

  // Whether this cluster takes rests; otherwise it has one share of one tile.
  CUTE_DEVICE
  bool
  takes_rests() const
  {
    return cluster >= params.k_parts * shared_tiles();
  }

  CUTE_DEVICE
  auto
  crd() const
  {
    return crd(is_shared() ? params.whole + shared : index);
  }
