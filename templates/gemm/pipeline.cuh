// Barriers of the pipeline's stages. `full` completes when a k-tile has arrived, `empty` when every consumer has read it.
struct Barriers {
  cutlass::arch::ClusterTransactionBarrier full[size<2>(SmemA{})];
  cutlass::arch::ClusterBarrier empty[size<2>(SmemA{})];
{% if teams > 1 %}  cutlass::arch::ClusterBarrier turn[teams];  // completes when a team may multiply
{% endif %}{% if c.splits() > 1 %}  cutlass::arch::ClusterBarrier sent;      // the other CTAs of the tile have read this CTA's partial sums
  cutlass::arch::ClusterBarrier received;  // their partial sums have arrived
{% endif %}};

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
{% if teams > 1 %}
  // Skips k-tiles that another team reads.
  CUTE_DEVICE
  void
  advance(int k_tiles)
  {
    int const at = stage + k_tiles;
    stage = at % size<2>(SmemA{});
    phase ^= at / size<2>(SmemA{}) & 1;
  }
{% endif %}};

// CTAs that share a tile of A are neighbours along N in the cluster; CTAs that share a tile of B are neighbours along M. A stage is
// empty when the warps of all sharers have read it.
constexpr int sharers = size<0>(Cluster{}) + size<1>(Cluster{}) - 1;

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
    cta = m + size<0>(Cluster{}) * n{% if c.splits() > 1 %} + size(Cluster{}) * tiles.rank_k{% endif %};
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
};{% if teams > 1 %}

// Ping-pong: teams take turns to multiply, each on its own tile, in the order in which stages are filled. A team hands over when its
// last k-tile has arrived. So no barrier runs more than a phase ahead of its waiters. A team stores its tile while others multiply.
struct Order {
  int team;
  uint32_t phase;

  CUTE_DEVICE explicit
  Order(int team) : team(team), phase(team == 0 ? 1 : 0) {}  // the first turn does not wait: on a new barrier, a wait for the previous phase returns at once

  CUTE_DEVICE
  void
  wait(Barriers const& barriers)
  {
    barriers.turn[team].wait(phase);
    phase ^= 1;
  }

  CUTE_DEVICE
  void
  hand_over(Barriers const& barriers) const
  {
    if (threadIdx.x % 32 == 0) {
      barriers.turn[team + 1 == teams ? 0 : team + 1].arrive();
    }
  }
};{% endif %}
