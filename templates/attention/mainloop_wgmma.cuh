// Issues the MMAs of a stage. The caller waits for them.
template <class Mma, class TCrA, class TCrB, class TCrC>
CUTE_DEVICE
void
issue(Mma& mma, TCrA const& tCrA, TCrB const& tCrB, TCrC& tCrC)
{
  warpgroup_fence_operand(tCrC);
  warpgroup_arrive();
  CUTE_UNROLL
  for (int k = 0; k < size<2>(tCrA); ++k) {
    gemm(mma, tCrA(_,_,k), tCrB(_,_,k), tCrC);
    mma.accumulate_ = GMMA::ScaleOut::One;
  }
  warpgroup_commit_batch();
}

// A warpgroup's 64 queries of a tile. While S of a step is multiplied, so is P @ V of the step before.
// Steps that none of its queries sees are left to the other warpgroups.
CUTE_DEVICE
void
attend(Params const& params, Work const& work, SharedStorage& shared, Positions& at, Turns const& turns)
{
  Tensor sQ = make_tensor(make_smem_ptr(shared.q), SmemQ{});                                     // (BM,D,1)
  Tensor sK = make_tensor(make_smem_ptr(shared.k), SmemK{});                                     // (BN,D,STAGES)
  Tensor sV = make_tensor(make_smem_ptr(shared.v), SmemV{});                                     // (DV,BN,STAGES)
  auto& queries = shared.barriers.queries;
  auto& keys    = shared.barriers.keys;
  auto& values  = shared.barriers.values;
  Scores scores_mma;
  Output output_mma;
  auto const thr_scores = scores_mma.get_slice(threadIdx.x);
  auto const thr_output = output_mma.get_slice(threadIdx.x);
  Tensor tSrQ = thr_scores.make_fragment_A(thr_scores.partition_A(sQ))(_,_,_,_0{});              // (MMA,MMA_M,MMA_K)
  Tensor tSrK = thr_scores.make_fragment_B(thr_scores.partition_B(sK));                        // (MMA,MMA_N,MMA_K,STAGES)
  Tensor tOrV = thr_output.make_fragment_B(thr_output.partition_B(sV));                        // (MMA,MMA_N,MMA_K,STAGES)
  Tensor tSrS = partition_fragment_C(scores_mma, TileS{});                                     // (MMA,MMA_M,MMA_N)
  Tensor tOrO = partition_fragment_C(output_mma, TileO{});                                     // (MMA,MMA_M,MMA_N)
  Tensor tOrP = make_tensor<Element>(partition_shape_A(output_mma, TileP{}));                  // (MMA,MMA_M,MMA_K)
  Tensor rows_s = by_rows(tSrS);                                                               // (ROWS,COLUMNS)
  Tensor rows_c = by_rows(thr_scores.partition_C(make_identity_tensor(TileS{})));              // (ROWS,COLUMNS) -> (query,key)
  Steps const all(params, work);
{%- if c.emptied().is_some() %}
  Steps own(params, work, 64 * turns.warpgroup, 64);
  own.trim();
  Walk walk(all);
{%- else %}
  Steps const own(params, work, 64 * turns.warpgroup, 64);
{%- endif %}
  Softmax<decltype(size<0>(rows_c))::value> softmax;
  Scoring const scoring(params);
  output_mma.accumulate_ = GMMA::ScaleOut::One;
  clear(tOrO);
  queries.full[at.q.stage].wait(at.q.phase);
{% include "attention/steps_wgmma.cuh" %}
  store(params, work, tOrO, softmax, shared);
  release(queries.empty[at.q.stage], lends || own.count == 0);
  at.q.advance();
}

CUTE_DEVICE
void
consume(Params const& params, SharedStorage& shared)
{
  Turns const turns(__shfl_sync(~0u, threadIdx.x / 128, 0));
  Positions at;
  Works works{params};
  Work work;
  while (works.next(work)) {
    attend(params, work, shared, at, turns);
  }
  turns.end();
}
