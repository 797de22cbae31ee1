// Named barriers of consumers: a turn of each warpgroup, rows of O of each warpgroup, and all of them.
constexpr int warpgroups = consumers / 128;
constexpr int rows_whole = warpgroups;
constexpr int all_here   = 2 * warpgroups;

// Ping-pong: warpgroups issue their MMAs in turn. While one multiplies, another computes weights.
struct Turns
{
  static constexpr bool pingpong = [[ pingpong ]];
  int warpgroup;

  CUTE_DEVICE explicit
  Turns(int warpgroup) : warpgroup(warpgroup)
  {
    if (pingpong && warpgroup + 1 == warpgroups) {
      pass();  // the first turn is the first warpgroup's
    }
  }

  CUTE_DEVICE
  void
  take() const
  {
    if constexpr (pingpong) {
      cutlass::arch::NamedBarrier::sync(256, warpgroup);
    }
  }

  CUTE_DEVICE
  void
  pass() const
  {
    if constexpr (pingpong) {
      cutlass::arch::NamedBarrier::arrive(256, warpgroup + 1 == warpgroups ? 0 : warpgroup + 1);
    }
  }

  // The turn that nobody takes.
  CUTE_DEVICE
  void
  end() const
  {
    if (pingpong && warpgroup == 0) {
      take();
    }
  }
};
