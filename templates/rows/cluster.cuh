// A warp tells its part of a row to the warps of the row in all CTAs. A barrier there counts the bytes: a barrier of the cluster
// would wait for all stores of a thread, and empty the first level of caches.
template <class Part, class State>
CUTE_DEVICE
void
tell(Part&& sPart, State const& state, uint64_t& met)
{
  uint32_t const lane = threadIdx.x % 32;
  if (lane < RowCtas) {
    auto* own = &sPart(_0{}, int(blockIdx.x) % RowCtas * RowWarps + int(threadIdx.x) / 32);
    uint32_t const to = set_block_rank(cast_smem_ptr_to_uint(own), lane);
    uint32_t const told = set_block_rank(cast_smem_ptr_to_uint(&met), lane);
    uint32_t words[sizeof(State) / 4];
    memcpy(words, &state, sizeof(State));
    CUTE_UNROLL
    for (uint32_t i = 0; i < sizeof(State) / 4; ++i) {
      asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];"
                   : : "r"(to + 4 * i), "r"(words[i]), "r"(told) : "memory");
    }
  }
}

// Waits until all warps have told theirs.
CUTE_DEVICE
void
meet(uint64_t& met)
{
  asm volatile(
      "{\n"
      ".reg .pred told;\n"
      "wait:\n"
      "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 told, [%0], 0;\n"
      "@!told bra wait;\n"
      "}\n"
      : : "r"(cast_smem_ptr_to_uint(&met)) : "memory");
}
