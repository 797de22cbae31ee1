// Hides a value from the optimiser, so that what depends on it is recomputed instead of held in registers.
CUTE_DEVICE
int
anew(int number)
{
  asm volatile("" : "+r"(number));
  return number;
}

// Persistent tile scheduler: a cluster computes every (gridDim / CTAs)-th tile of D.
// Clusters are numbered along [[ c.raster()[0]|upper ]] within groups, then along [[ c.raster()[1]|upper ]], then group by group{% if c.batched() %}, then batch by batch{% endif %}.
// This rasterization keeps the operands in the L2 cache.
struct Scheduler {
  [[ c.plan.name() ]]_params const& params;
  int rank_m, rank_n{% if c.splits() > 1 %}, rank_k{% endif %};          // position of this CTA in its cluster
{% if c.streams_k() %}{% include "gemm/scheduler_stream_k.cuh" %}
{% else %}  int tiles;                   // all of them
  int index;

  CUTE_DEVICE explicit
  Scheduler([[ c.plan.name() ]]_params const& params)
    : params(params),
      rank_m(blockIdx.x % size<0>(Cluster{})),
      rank_n(blockIdx.x % size(Cluster{}) / size<0>(Cluster{})),
{% if c.splits() > 1 %}      rank_k(blockIdx.x % ctas / size(Cluster{})),
{% endif %}      tiles(clusters_m() * clusters_n(){% if c.batched() %} * params.l{% endif %}),
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
  // What there is to compute, in tiles of a cluster: not held in registers between tiles.
  CUTE_DEVICE
  int
  clusters_m() const
  {
    return ceil_div(anew(params.m), size<0>(TileD{}) * size<0>(Cluster{}));
  }

  CUTE_DEVICE
  int
  clusters_n() const
  {
    return ceil_div(anew(params.n), size<1>(TileD{}) * size<1>(Cluster{}));
  }

{% if c.splits() > 1 %}  // Split-K: this CTA's first k-tile, and its number of k-tiles.
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
  crd({% if c.streams_k() %}int index{% endif %}) const
  {
    int const clusters_m = this->clusters_m();
    int const clusters_n = this->clusters_n();
    int const of_batch = {% if c.batched() %}index % (clusters_m * clusters_n){% else %}index{% endif %};
    int const first_[[ c.raster()[0] ]] = of_batch / (params.group * clusters_[[ c.raster()[1] ]]) * params.group;
    int const in_group = of_batch % (params.group * clusters_[[ c.raster()[1] ]]);
    int const group_[[ c.raster()[0] ]] = cute::min(params.group, clusters_[[ c.raster()[0] ]] - first_[[ c.raster()[0] ]]);
    int const cluster_[[ c.raster()[0] ]] = first_[[ c.raster()[0] ]] + in_group % group_[[ c.raster()[0] ]];
    int const cluster_[[ c.raster()[1] ]] = in_group / group_[[ c.raster()[0] ]];
    return make_coord(cluster_m * size<0>(Cluster{}) + rank_m,
                      cluster_n * size<1>(Cluster{}) + rank_n{% if c.batched() %},
                      index / (clusters_m * clusters_n){% endif %});
  }
{% if c.streams_k() %}
  CUTE_DEVICE
  auto
  crd() const
  {
    return crd(is_shared() ? params.whole + shared : index);
  }
{% endif %}};
