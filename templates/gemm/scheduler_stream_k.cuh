  int index;                   // of the tiles that one cluster computes as a whole; the others are shared
  int cluster;
  int shared = 0;              // of the shared tiles the one that it computes a part of, the k-tile from which on,
  int k_tile = 0;
  int left = 0;                // and how many k-tiles it has still to compute, of this tile and those after it

  CUTE_DEVICE
  Scheduler([[ c.plan.name() ]]_params const& params, int cta)
    : params(params),
      rank_m(cta % size<0>(Cluster{})),
      rank_n(cta % size(Cluster{}) / size<0>(Cluster{})),
      index(cta / ctas),
      cluster(index)
  {
    int const all = shared_tiles();
    if (all == 0) {
      return;
    }
    int const rest = k_tiles_of_one() - first_of_rest();
    if (!takes_rests()) {
      // Clusters next to each other are at the same k-tiles of tiles next to each other.
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

  // Whether it computes a part of the tile.
  CUTE_DEVICE
  bool
  is_shared() const
  {
    return index >= params.whole;
  }

{% if c.finds_anew() %}  CUTE_DEVICE
  void
  advance(int turns)
  {
    int const whole = cute::min(turns, ceil_div(cute::max(params.whole - index, 0), int(gridDim.x)));
    index += whole * gridDim.x;
    turns -= whole;
    if (turns > 0) {
      // Behind the first part that it takes are rests.
      left -= k_tiles() + (turns - 1) * (k_tiles_of_one() - first_of_rest());
      shared += turns;
      k_tile = first_of_rest();
    }
  }
{% else %}  CUTE_DEVICE
  void
  advance()
  {
    if (is_shared()) {
      left -= k_tiles();
      shared += 1;
      k_tile = first_of_rest();
    } else {
      index += gridDim.x / ctas;
    }
  }
{% endif %}
  // Of the tile the first k-tile of this cluster, and how many are its own.
  CUTE_DEVICE
  int
  first_k_tile() const
  {
    return is_shared() ? k_tile : 0;
  }

  CUTE_DEVICE
  int
  k_tiles() const
  {
    return is_shared() ? cute::min(left, k_tiles_of_one() - k_tile) : k_tiles_of_one();
  }

  // The number of its part among those of all shared tiles: from one rest to the next either the cluster or the tile is another.
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
    return clusters_m() * clusters_n(){% if c.batched() %} * params.l{% endif %} - params.whole;
  }

  // K-tile of a shared tile from which on clusters take what is left of one tile after the other.
  CUTE_DEVICE
  int
  first_of_rest() const
  {
    return cute::min(params.k_parts * params.k_share, k_tiles_of_one());
  }

  // Whether this cluster does, else it has a part that begins ahead of that, of one tile.
  CUTE_DEVICE
  bool
  takes_rests() const
  {
    return cluster >= params.k_parts * shared_tiles();
  }
