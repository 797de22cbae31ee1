  //
  // Tiles of this CTA, in global and in shared memory. A and B are shifted along K, so that the first k-tile holds the residue.
  //

  int const residue_k = params.k - size<1>(TileA{}) * ceil_div(params.k, size<1>(TileA{}));  // in (-BK,0]
  Tensor gA = local_tile(domain_offset(make_coord(0, residue_k), mA), TileA{}, make_coord(tile_m, _));  // (BM,BK,k)
  Tensor gB = local_tile(domain_offset(make_coord(0, residue_k), mB), TileB{}, make_coord(tile_n, _));  // (BN,BK,k)
{% include "sgemm/tiles_d.cuh" %}
  extern __shared__ __align__([[ c.alignment() ]]) unsigned char smem[];
  auto& shared = *reinterpret_cast<SharedStorage*>(smem);
  Tensor sA = make_tensor(make_smem_ptr(shared.a), SmemA{});  // (BM,BK,STAGES)
  Tensor sB = make_tensor(make_smem_ptr(shared.b), SmemB{});  // (BN,BK,STAGES)

  //
  // Partition: this thread's share of the copies and of the products
  //

  CopyA const copy_a;
  auto const thr_copy_a = copy_a.get_slice(threadIdx.x);
  Tensor tAgA = group_modes<1,3>(thr_copy_a.partition_S(gA));  // (CPY,COPIES_A,k)
  Tensor tAsA = group_modes<1,3>(thr_copy_a.partition_D(sA));  // (CPY,COPIES_A,STAGES)

  CopyB const copy_b;
  auto const thr_copy_b = copy_b.get_slice(threadIdx.x);
  Tensor tBgB = group_modes<1,3>(thr_copy_b.partition_S(gB));  // (CPY,COPIES_B,k)
  Tensor tBsB = group_modes<1,3>(thr_copy_b.partition_D(sB));  // (CPY,COPIES_B,STAGES)

  Mma const mma;
  auto const thr_mma = mma.get_slice(threadIdx.x);
  Tensor tCsA = thr_mma.partition_A(sA);                                                   // (MMA,MMA_M,BK,STAGES)
  Tensor tCsB = thr_mma.partition_B(sB);                                                   // (MMA,MMA_N,BK,STAGES)
  Tensor tCrA = make_tensor<float>(make_shape(size<0>(tCsA), size<1>(tCsA), _2{}));        // (MMA,MMA_M,BUFFERS)
  Tensor tCrB = make_tensor<float>(make_shape(size<0>(tCsB), size<1>(tCsB), _2{}));        // (MMA,MMA_N,BUFFERS)
  Tensor tCrC = partition_fragment_C(mma, TileD{});                                        // (MMA,MMA_M,MMA_N)
  clear(tCrC);

