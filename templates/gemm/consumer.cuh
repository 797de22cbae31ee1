// Warpgroups multiply k-tiles as they arrive; one thread of each warp says when a stage was read.
template <class TCrA, class TCrB, class TCrC>
CUTE_DEVICE
void
consume(int k_tiles, Mma const& mma, TCrA const& tCrA, TCrB const& tCrB, TCrC& tCrC, Barriers& barriers)
{
  PipeState pipe;
  CUTE_NO_UNROLL
  for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
    barriers.full[pipe.stage].wait(pipe.phase);
    warpgroup_fence_operand(tCrC);
    warpgroup_arrive();
    gemm(mma, tCrA(_,_,_,pipe.stage), tCrB(_,_,_,pipe.stage), tCrC);
    warpgroup_commit_batch();
    warpgroup_wait<0>();
    warpgroup_fence_operand(tCrC);
    if (threadIdx.x % 32 == 0) {
      barriers.empty[pipe.stage].arrive();
    }
    pipe.advance();
  }
}
