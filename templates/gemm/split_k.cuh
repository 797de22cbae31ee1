// Split-K within the cluster: adds the partial sums of a tile's CTAs. Each CTA sends every other CTA the columns that the other one
// stores, and adds the columns that it receives to its own, in rank order.
struct Barriers : StageBarriers {
  cutlass::arch::ClusterBarrier sent;      // the other CTAs of the tile have read this CTA's partial sums
  cutlass::arch::ClusterBarrier received;  // their partial sums have arrived

  CUTE_DEVICE
  void
  init()
  {
    StageBarriers::init();
    sent.init([[ arrivals.parts ]]);  // warps of the tile's other CTAs
    received.init([[ arrivals.parts ]]);
  }
};

struct Team {
  Barriers& barriers;
  [[ c.sum() ]]* parts;
  int thread;
  int rank_k;
  uint32_t first;      // rank in the cluster of the tile's first CTA
  uint32_t phase = 0;

  template <class Shared>
  CUTE_DEVICE
  Team(Scheduler const& tiles, Shared& shared, int)
    : barriers(shared.barriers), parts(shared.parts), thread(threadIdx.x % size(Mma{})), rank_k(tiles.rank_k),
      first(rank_of(tiles.rank_m, tiles.rank_n, 0))
  {}

  template <class SD>
  CUTE_DEVICE
  SD const&
  own(SD const& sD) const
  {
    return sD;
  }

  CUTE_DEVICE
  uint32_t
  cta(int rank) const
  {
    return first + size(Cluster{}) * rank;
  }

  // Each warp arrives at the barrier of every other CTA of the tile once all of its lanes have written or read: one lane for each
  // CTA.
  CUTE_DEVICE
  void
  tell(cutlass::arch::ClusterBarrier const& barrier) const
  {
    __syncwarp();
    int const lane = threadIdx.x % 32;
    if (lane < splits - 1) {
      uint32_t const address = set_block_rank(cast_smem_ptr_to_uint(&barrier), cta(lane + (lane >= rank_k ? 1 : 0)));
      asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" : : "r"(address) : "memory");
    }
  }

  // Waits until all of them have arrived. ClusterBarrier's own wait acquires at CTA scope only.
  CUTE_DEVICE
  static void
  wait(cutlass::arch::ClusterBarrier const& barrier, uint32_t phase)
  {
    uint32_t const address = cast_smem_ptr_to_uint(&barrier);
    asm volatile(
      "{\n"
      ".reg .pred told;\n"
      "again:\n"
      "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 told, [%0], %1;\n"
      "@!told bra again;\n"
      "}" : : "r"(address), "r"(phase) : "memory");
  }

  // The other CTAs must not exit before this CTA has written to their shared memory, nor this CTA before they have arrived here.
  CUTE_DEVICE
  void
  wait_until_read() const
  {
    wait(barriers.sent, phase ^ 1);  // on a new barrier, a wait for the previous phase returns at once
  }

  // Leaves the sums of this CTA's columns in its first accumulators.
  template <class TCrC>
  CUTE_DEVICE
  void
  add_up(TCrC& tCrC)
  {
    constexpr int of_row = decltype(size<0>(tCrC))::value / splits;                            // of a share, in an MMA_M
    constexpr int share = of_row * decltype(size<1>(tCrC))::value;
    static_assert(decltype(size<2>(tCrC))::value == 1 && share == size<0>(SmemParts{}), "a share for each CTA");
    auto const of = [&](int rank, int i) -> [[ c.sum() ]]& { return tCrC(rank * of_row + i % of_row, i / of_row, _0{}); };

    wait_until_read();
    CUTE_UNROLL
    for (int rank = 0; rank < splits; ++rank) {
      if (rank != rank_k) {
        auto* const theirs = static_cast<[[ c.sum() ]]*>(__cluster_map_shared_rank(parts, cta(rank)));
        Tensor given = make_tensor(theirs, SmemParts{})(_,thread,rank_k - (rank_k > rank ? 1 : 0));  // ((VECTOR,VECTORS))
        CUTE_UNROLL
        for (int i = 0; i < share; i += 4) {
          auto const four = make_[[ c.sum4() ]](of(rank, i), of(rank, i + 1), of(rank, i + 2), of(rank, i + 3));
          *reinterpret_cast<[[ c.sum4() ]]*>(&given(i)) = four;
        }
      }
    }
    tell(barriers.received);
    CUTE_UNROLL
    for (int rank = 1; rank < splits; ++rank) {
      if (rank == rank_k) {
        CUTE_UNROLL
        for (int i = 0; i < share; ++i) {
          of(0, i) = of(rank, i);
        }
      }
    }
    wait(barriers.received, phase);
    phase ^= 1;
    CUTE_UNROLL
    for (int sender = 0; sender < splits - 1; ++sender) {
      Tensor given = make_tensor(parts, SmemParts{})(_,thread,sender);                         // ((VECTOR,VECTORS))
      CUTE_UNROLL
      for (int i = 0; i < share; i += 4) {
        [[ c.sum4() ]] const part = *reinterpret_cast<[[ c.sum4() ]] const*>(&given(i));
        of(0, i) += part.x;
        of(0, i + 1) += part.y;
        of(0, i + 2) += part.z;
        of(0, i + 3) += part.w;
      }
    }
    tell(barriers.sent);
  }
};
