// The stages of the pipeline: `full` says that a k-tile has arrived, `empty` that every consumer of it has read it.
struct Barriers {
  cutlass::arch::ClusterTransactionBarrier full[size<2>(SmemA{})];
  cutlass::arch::ClusterBarrier empty[size<2>(SmemA{})];
{% if teams > 1 %}  cutlass::arch::ClusterBarrier turn[teams];  // that of each team to multiply
{% endif %}{% if c.splits() > 1 %}  cutlass::arch::ClusterBarrier sent;      // what this CTA gave to others of its tile has been read
  cutlass::arch::ClusterBarrier received;  // what they gave to it is there
{% endif %}};

// Where a warp is in the ring of stages. A barrier's phase turns when all that it counts have arrived.
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
  // Past k-tiles that another team reads.
  CUTE_DEVICE
  void
  advance(int k_tiles)
  {
    int const at = stage + k_tiles;
    stage = at % size<2>(SmemA{});
    phase ^= at / size<2>(SmemA{}) & 1;
  }
{% endif %}};

// CTAs of a cluster that share a tile of A lie side by side along N, those that share one of B along M. A stage is empty when the
// warps of all of them have read it.
constexpr int sharers = size<0>(Cluster{}) + size<1>(Cluster{}) - 1;

// Says that a warp has read a stage, to the producers that fill it: one lane for each.
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
    // By a predicate: beside a branch ptxas may read accumulators before their products have ended, which it then serializes (C7514).
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

// Teams multiply by turns, each a tile of its own, in the order in which stages are filled. A team hands over when it has seen its last
// k-tile arrive, so that no barrier is more than a phase ahead of who waits for it, and stores its tile while others multiply.
struct Order {
  int team;
  uint32_t phase;

  CUTE_DEVICE explicit
  Order(int team) : team(team), phase(team == 0 ? 1 : 0) {}  // the first turn: a new barrier counts as one whose last phase is over

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
