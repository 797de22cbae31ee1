// Which tiles of D this CTA computes: clusters take them by turns. Those of a cluster are numbered along M within groups of [[ group ]], then along N, then group by group{% if c.batched() %}, then batch by batch{% endif %}, so that what is read at a time stays in the L2 cache.
struct Scheduler {
  int rank_m, rank_n{% if splits > 1 %}, rank_k{% endif %};          // this CTA in its cluster
  int clusters_m, clusters_n;  // what there is to compute, in tiles of a cluster
{% if streams_k %}  int tiles;                   // those that one cluster computes as a whole; the others are shared
  int index;
  int cluster;
  int k_tiles_of_one;
  int first_of_rest;           // k-tile of a shared tile from which on clusters take what is left of one tile after the other
  bool takes_rests;            // else a part that begins ahead of it, of one tile
  int shared = 0;              // of the shared tiles the one that it computes a part of, the k-tile from which on,
  int k_tile = 0;
  int left = 0;                // and how many k-tiles it has still to compute, of this tile and those after it

  CUTE_DEVICE
  Scheduler([[ c.plan.name() ]]_params const& params, int cta)
    : rank_m(cta % size<0>(Cluster{})),
      rank_n(cta % size(Cluster{}) / size<0>(Cluster{})),
      clusters_m(ceil_div(params.m, size<0>(TileD{}) * size<0>(Cluster{}))),
      clusters_n(ceil_div(params.n, size<1>(TileD{}) * size<1>(Cluster{}))),
      tiles(params.whole),
      index(cta / ctas),
      cluster(index),
      k_tiles_of_one(ceil_div(params.k, size<1>(TileA{}))),
      first_of_rest(cute::min(params.k_parts * params.k_share, k_tiles_of_one))
  {
    int const all = clusters_m * clusters_n{% if c.batched() %} * params.l{% endif %} - tiles;
    takes_rests = cluster >= params.k_parts * all;
    if (all == 0) {
      return;
    }
    if (!takes_rests) {
      // Clusters next to each other are at the same k-tiles of tiles next to each other.
      shared = cluster % all;
      k_tile = cluster / all * params.k_share;
      left = cute::max(cute::min(params.k_share, k_tiles_of_one - k_tile), 0);
    } else if (first_of_rest < k_tiles_of_one) {
      int const rest = k_tiles_of_one - first_of_rest;
      int64_t const begin = int64_t(cluster - params.k_parts * all) * params.k_share;
      left = int(cute::max(cute::min(int64_t(params.k_share), int64_t(all) * rest - begin), int64_t(0)));
      shared = int(begin / rest);
      k_tile = first_of_rest + int(begin % rest);
    }
  }

  CUTE_DEVICE
  bool
  has_tile() const
  {
    return index < tiles || left > 0;
  }

  // Whether it computes a part of the tile.
  CUTE_DEVICE
  bool
  is_shared() const
  {
    return index >= tiles;
  }

  CUTE_DEVICE
  void
  advance()
  {
    if (is_shared()) {
      left -= k_tiles();
      shared += 1;
      k_tile = first_of_rest;
    } else {
      index += gridDim.x / ctas;
    }
  }

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
    return is_shared() ? cute::min(left, k_tiles_of_one - k_tile) : k_tiles_of_one;
  }

  // The number of its part among those of all shared tiles: from one rest to the next either the cluster or the tile is another.
  CUTE_DEVICE
  int
  part() const
  {
    return takes_rests ? cluster + shared : cluster;
  }
{% else %}  int tiles;                   // all of them
  int index;

  CUTE_DEVICE explicit
  Scheduler([[ c.plan.name() ]]_params const& params)
    : rank_m(blockIdx.x % size<0>(Cluster{})),
      rank_n(blockIdx.x % size(Cluster{}) / size<0>(Cluster{})),
{% if splits > 1 %}      rank_k(blockIdx.x % ctas / size(Cluster{})),
{% endif %}      clusters_m(ceil_div(params.m, size<0>(TileD{}) * size<0>(Cluster{}))),
      clusters_n(ceil_div(params.n, size<1>(TileD{}) * size<1>(Cluster{}))),
      tiles(clusters_m * clusters_n{% if c.batched() %} * params.l{% endif %}),
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
{% endif %}
{% if splits > 1 %}  // Of so many k-tiles the first of this CTA, and how many are its own.
  CUTE_DEVICE
  int
  first_k_tile(int of_all) const
  {
    return of_all / splits * rank_k + cute::min(rank_k, of_all % splits);
  }

  CUTE_DEVICE
  int
  k_tiles(int of_all) const
  {
    return of_all / splits + (rank_k < of_all % splits ? 1 : 0);
  }

{% endif %}  // (m,n{% if c.batched() %},l{% endif %}) of the tile. One that hangs over the cluster's edge of D lies outside: it is zeros, and nothing of it is stored.
  CUTE_DEVICE
  auto
  crd({% if streams_k %}int index{% endif %}) const
  {
    int const of_batch = {% if c.batched() %}index % (clusters_m * clusters_n){% else %}index{% endif %};
    int const first_m = of_batch / (Group{} * clusters_n) * Group{};
    int const in_group = of_batch % (Group{} * clusters_n);
    int const group_m = cute::min(Group{}, clusters_m - first_m);
    return make_coord((first_m + in_group % group_m) * size<0>(Cluster{}) + rank_m,
                      in_group / group_m * size<1>(Cluster{}) + rank_n{% if c.batched() %},
                      index / (clusters_m * clusters_n){% endif %});
  }
{% if streams_k %}
  CUTE_DEVICE
  auto
  crd() const
  {
    return crd(is_shared() ? tiles + shared : index);
  }
{% endif %}};
