// Rows of V behind the last key of a sequence are another sequence's. Their weights are 0, and 0 times infinity is NaN.
template <class SV>
CUTE_DEVICE
void
clear_tail(Steps const& all, int len_k, SV&& sV_stage)
{
  int const keys = len_k - all.key(0);
  if (keys < Steps::Step{}) {
    Tensor tail = as_position_independent_swizzle_tensor(sV_stage);                            // (DV,BN)
    for (int i = threadIdx.x + keys * size<0>(tail); i < size(tail); i += consumers) {
      tail(i % size<0>(tail), i / size<0>(tail)) = Element(0.0f);
    }
    cutlass::arch::fence_view_async_shared();
    cutlass::arch::NamedBarrier::sync(consumers, all_here);
  }
}
