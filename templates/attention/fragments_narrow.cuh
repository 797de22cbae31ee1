  Scores const scores_mma;
  Output const output_mma;
  auto const thr_scores = scores_mma.get_slice(threadIdx.x);
  auto const thr_output = output_mma.get_slice(threadIdx.x);
  decltype(thr_scores.partition_fragment_A(sQ(_,_,_0{}))) tSrQ;                                // (MMA,MMA_M,MMA_K)
  decltype(thr_scores.partition_fragment_B(sK(_,_,_0{}))) tSrK;                                // (MMA,MMA_N,MMA_K)
  decltype(thr_output.partition_fragment_B(sV(_,_,_0{}))) tOrV;                                // (MMA,MMA_N,MMA_K)
  LdsmQ const ldsm_q;
  WidenK const ldsm_k;
  WidenV const ldsm_v;
  Tensor tXsQ = partition_S(ldsm_q, threadIdx.x, sQ)(_,_,_,_0{});                                // (CPY,MMA_M,MMA_K)
  Tensor tXrQ = make_tensor(tSrQ.data(), decltype(LdsmQ::retile(tSrQ.layout())){});            // (CPY,MMA_M,MMA_K)
  Tensor tXsK = thr_scores.partition_B(sK);                                                    // (MMA,MMA_N,MMA_K,STAGES)
  Tensor tXrK = make_tensor(tSrK.data(), tSrK.layout());                                       // (MMA,MMA_N,MMA_K)
  Tensor tXsV = thr_output.partition_B(sV);                                                    // (MMA,MMA_N,MMA_K,STAGES)
  Tensor tXrV = make_tensor(tOrV.data(), tOrV.layout());                                       // (MMA,MMA_N,MMA_K)
