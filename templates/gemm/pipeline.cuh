// The stages of the pipeline: `full` says that a k-tile has arrived, `empty` that every consumer has read it.
struct Barriers {
  cutlass::arch::ClusterTransactionBarrier full[size<2>(SmemA{})];
  cutlass::arch::ClusterBarrier empty[size<2>(SmemA{})];
};

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
};
