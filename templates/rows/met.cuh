
  // For each meeting of the CTAs of a row, a barrier that expects the bytes that warps tell.
  __shared__ uint64_t smemMet[size<0>(typename Walk::SmemMet{})];
  if (threadIdx.x == 0) {
{%- for s in self.meetings() %}
    initialize_barrier([[ s.barrier() ]], 1);
    set_barrier_transaction_bytes([[ s.barrier() ]], RowCtas * RowWarps * int([[ s.told() ]]));
{%- endfor %}
    cutlass::arch::fence_barrier_init();
  }
