// Ping-pong: teams of warpgroups take turns to multiply, each on its own tile, in the order in which stages are filled. A team
// hands over when its last k-tile has arrived. So no barrier runs more than a phase ahead of its waiters. A team stores its tile
// while others multiply.
struct Barriers : StageBarriers {
  cutlass::arch::ClusterBarrier turn[teams];  // completes when a team may multiply

  CUTE_DEVICE
  void
  init()
  {
    StageBarriers::init();
    CUTE_UNROLL
    for (int team = 0; team < teams; ++team) {
      turn[team].init([[ arrivals.turn ]]);  // warps of a team
    }
  }
};

struct Team {
  int index;
  uint32_t phase;

  template <class Shared>
  CUTE_DEVICE
  Team(Scheduler const&, Shared&, int warp)
    : index(warp / (size(Mma{}) / 32)),
      phase(index == 0 ? 1 : 0)  // the first turn does not wait: on a new barrier, a wait for the previous phase returns at once
  {}

  // The buffers of D that are this team's.
  template <class SD>
  CUTE_DEVICE
  auto
  own(SD const& sD) const
  {
    auto const buffers = Int<size<2>(SmemD{}) / teams>{};
    return local_tile(sD, append(PartD{}, buffers), make_coord(_0{}, _0{}, index));            // (PART_M,PART_N,BUFFERS)
  }

  // Skips the k-tiles that other teams read.
  CUTE_DEVICE
  static void
  skip(PipeState& pipe, int k_tiles)
  {
    int const at = pipe.stage + k_tiles;
    pipe.stage = at % size<2>(SmemA{});
    pipe.phase ^= at / size<2>(SmemA{}) & 1;
  }

  CUTE_DEVICE
  void
  wait(Barriers const& barriers)
  {
    barriers.turn[index].wait(phase);
    phase ^= 1;
  }

  CUTE_DEVICE
  void
  hand_over(Barriers const& barriers) const
  {
    if (threadIdx.x % 32 == 0) {
      barriers.turn[index + 1 == teams ? 0 : index + 1].arrive();
    }
  }
};
