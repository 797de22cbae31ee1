  CUTE_UNROLL
  for (int lanes = 16; lanes > 0; lanes /= 2) {
    sum = __fadd_rn(sum, __shfl_xor_sync(0xffffffff, sum, lanes));
  }
