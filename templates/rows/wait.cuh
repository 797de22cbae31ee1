// Waits until all but so many of the last tiles have arrived.
template <int Most>
CUTE_DEVICE
void
wait_for(int pending)
{
  if constexpr (Most > 0) {
    if (pending < Most) {
      return wait_for<Most - 1>(pending);
    }
  }
  cp_async_wait<Most>();
}

// The tensor in shared memory with its address in a register: ptxas would compute it again for each chunk.
template <class Src>
CUTE_DEVICE
auto
addressed(Src const& src)
{
  uint32_t address = cast_smem_ptr_to_uint(raw_pointer_cast(src.data()));
  asm volatile("" : "+r"(address));
  auto const ptr = static_cast<typename Src::value_type*>(__cvta_shared_to_generic(address));
  return make_tensor(make_smem_ptr(ptr), src.layout());
}
