// Which tiles of D this CTA computes. The CTAs of a cluster compute neighbours; clusters take theirs by turns, numbered along M
// within a group of [[ group ]], then along N, then group by group, so that what is read at a time stays in the L2 cache.
struct Scheduler {
  int rank_m, rank_n;          // this CTA in its cluster
  int clusters_m, clusters_n;  // what there is to compute, in tiles of a cluster
  int index;

  CUTE_DEVICE explicit
  Scheduler([[ c.plan.name() ]]_params const& params)
    : rank_m(blockIdx.x % size<0>(Cluster{})),
      rank_n(blockIdx.x % size(Cluster{}) / size<0>(Cluster{})),
      clusters_m(ceil_div(params.m, size<0>(TileD{}) * size<0>(Cluster{}))),
      clusters_n(ceil_div(params.n, size<1>(TileD{}) * size<1>(Cluster{}))),
      index(blockIdx.x / size(Cluster{}))
  {}

  CUTE_DEVICE
  bool
  has_tile() const
  {
    return index < clusters_m * clusters_n;
  }

  CUTE_DEVICE
  void
  advance()
  {
    index += gridDim.x / size(Cluster{});
  }

  // (m,n) of the tile. One that hangs over the cluster's edge of D lies outside: it is zeros, and nothing of it is stored.
  CUTE_DEVICE
  auto
  crd() const
  {
    int const first_m = index / (Group{} * clusters_n) * Group{};
    int const in_group = index % (Group{} * clusters_n);
    int const group_m = cute::min(Group{}, clusters_m - first_m);
    return make_coord((first_m + in_group % group_m) * size<0>(Cluster{}) + rank_m,
                      in_group / group_m * size<1>(Cluster{}) + rank_n);
  }
};
