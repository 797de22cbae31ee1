// Barriers of a ring's stages. `full` completes when TMA has filled a stage, `empty` when every warp that multiplies has read it.
template <int Stages>
struct Ring
{
  cutlass::arch::ClusterTransactionBarrier full[Stages];
  cutlass::arch::ClusterBarrier empty[Stages];

  CUTE_DEVICE
  void
  init()
  {
    CUTE_UNROLL
    for (int stage = 0; stage < Stages; ++stage) {
      full[stage].init([[ arrivals.full ]]);
      empty[stage].init([[ arrivals.empty ]]);
    }
  }
};

struct Barriers
{
  Ring<size<2>(SmemQ{})> queries;
  Ring<size<2>(SmemK{})> keys;
  Ring<size<2>(SmemV{})> values;

  CUTE_DEVICE
  void
  init()
  {
    queries.init();
    keys.init();
    values.init();
  }
};

// A position in a ring. A barrier's phase flips when all expected arrivals are in.
template <int Stages>
struct At
{
  int stage = 0;
  uint32_t phase = 0;

  CUTE_DEVICE
  void
  advance()
  {
    if (++stage == Stages) {
      stage = 0;
      phase ^= 1;
    }
  }
};

struct Positions
{
  At<size<2>(SmemQ{})> q;
  At<size<2>(SmemK{})> k;
  At<size<2>(SmemV{})> v;
};

// Tells the producer that this warp has read a stage, if it has. A predicate, not a branch: with a branch ptxas may read
// accumulators before WGMMA has ended, and then serializes it (C7514).
CUTE_DEVICE
void
release(cutlass::arch::ClusterBarrier const& empty, bool has_read = true)
{
  asm volatile(
    "{\n"
    ".reg .pred p;\n"
    "setp.ne.b32 p, %1, 0;\n"
    "@p mbarrier.arrive.shared::cta.b64 _, [%0];\n"
    "}" : : "r"(cast_smem_ptr_to_uint(&empty)), "r"(int(has_read && threadIdx.x % 32 == 0)) : "memory");
}
