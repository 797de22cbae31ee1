// Persistent tile scheduler: a cluster computes every (gridDim / CTAs)-th tile of D.
{%- let [first, then] = c.raster() %}
// Clusters are numbered along [[ first|upper ]] within groups, then along [[ then|upper ]], group by group, batch by batch.
// This rasterization keeps the operands in the L2 cache.
struct Scheduler {
  Params const& params;
  int rank_m, rank_n, rank_k;  // position of this CTA in its cluster

  // What there is to compute, in tiles of a cluster: not held in registers between tiles.
  CUTE_DEVICE
  int
  clusters_m() const
  {
    return ceil_div(anew([[ c.rows_of_tiles() ]]), size<0>(TileD{}) * size<0>(Cluster{}));
  }

  CUTE_DEVICE
  int
  clusters_n() const
  {
    return ceil_div(anew(params.n), size<1>(TileD{}) * size<1>(Cluster{}));
  }
{%- match c.grouped() %}
{%- when false %}

  CUTE_DEVICE
  int
  all_tiles() const
  {
    int const of_batch = clusters_m() * clusters_n();
    int const batches = [[ c.batches() ]];
    return of_batch * batches;
  }
{%- when true %}
{%- endmatch %}

  // (m,n[[ c.modes_l() ]]) of a tile. One that hangs over the cluster's edge of D lies outside: it is zeros, and is not stored.
  CUTE_DEVICE
  auto
  crd(int index) const
  {
    int const clusters_m = this->clusters_m();
    int const clusters_n = this->clusters_n();
{%- for (name, value) in c.order() %}
    int const [[ name ]] = [[ value ]];
{%- endfor %}
    auto const crd = make_coord(cluster_m * size<0>(Cluster{}) + rank_m, cluster_n * size<1>(Cluster{}) + rank_n);
{%- match c.grouped() %}
{%- when true %}
    return make_coord(get<0>(crd), get<1>(crd), group, begin, rows);
  }
{% include "gemm/scheduler_grouped.cuh" %}
{%- when false %}
    if constexpr (batched) {
      return append(crd, index / (clusters_m * clusters_n));
    } else {
      return crd;
    }
  }

{%- if c.streams_k() %}
{% include "gemm/scheduler_stream_k.cuh" %}
{%- else %}
{% include "gemm/scheduler_static.cuh" %}
{%- endif %}
{%- endmatch %}
};
