// Barriers of the pipeline's stages. `full` completes when a k-tile has arrived, `empty` when every consumer has read it.
struct StageBarriers {
  cutlass::arch::ClusterTransactionBarrier full[size<2>(SmemA{})];
  cutlass::arch::ClusterBarrier empty[size<2>(SmemA{})];

  CUTE_DEVICE
  void
  init()
  {
    CUTE_UNROLL
    for (int stage = 0; stage < size<2>(SmemA{}); ++stage) {
      full[stage].init([[ arrivals.full ]]);
      empty[stage].init([[ arrivals.empty ]]);  // warps that read it
    }
  }
};

// A warp's position in the ring of stages. A barrier's phase flips when all expected arrivals are in.
struct PipeState {
  int stage = 0;
  uint32_t phase = 0;

  CUTE_DEVICE
  void
  advance()
  {
    if (++stage == size<2>(SmemA{})) {
      stage = 0;
      phase ^= 1;
    }
  }
};

// CTAs that share a tile of A are neighbours along N in the cluster; CTAs that share a tile of B are neighbours along M. A stage is
// empty when the warps of all sharers have read it.
constexpr int sharers = size<0>(Cluster{}) + size<1>(Cluster{}) - 1;

// Rank in the cluster of the CTA at (m,n) that has the k-tiles of this one.
CUTE_DEVICE
int
rank_of(int m, int n, int rank_k)
{
  return m + size<0>(Cluster{}) * n + size(Cluster{}) * rank_k;
}

// Tells the producers that fill a stage that this warp has read it: one lane for each producer.
struct Release {
  uint32_t cta;
  bool is_for_one;

  CUTE_DEVICE explicit
  Release(Scheduler const& tiles)
  {
    int const lane = threadIdx.x % 32;
    int const m = lane < size<0>(Cluster{}) ? lane : tiles.rank_m;
    int const other_n = lane - size<0>(Cluster{});
    int const n = lane < size<0>(Cluster{}) ? tiles.rank_n : other_n + (other_n >= tiles.rank_n ? 1 : 0);
    cta = rank_of(m, n, tiles.rank_k);
    is_for_one = lane < sharers;
  }

  CUTE_DEVICE
  void
  operator()(cutlass::arch::ClusterBarrier const& empty) const
  {
    // A predicate, not a branch: with a branch ptxas may read accumulators before WGMMA has ended, and then serializes it (C7514).
    if constexpr (ctas > 1) {
      empty.arrive(cta, is_for_one);
    } else {
      asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "setp.ne.b32 p, %1, 0;\n"
        "@p mbarrier.arrive.shared::cta.b64 _, [%0];\n"
        "}" : : "r"(cast_smem_ptr_to_uint(&empty)), "r"(int(is_for_one)) : "memory");
    }
  }
};
