// A thread's elements of a tensor in shared memory, as CuTe's partition_S and partition_D give them. The static layout is
// computed as a type, because compiling its derivation as code would cost nvcc a second or more.
template <class Copy, class Thread, class T>
CUTE_DEVICE
auto
partition_S(Copy const&, Thread const& thread, T const& tensor)
{
  using Divided = decltype(Copy::tidfrg_S(tensor.layout()));  // (THREADS,(CPY,..),(CPY_M,CPY_N,..))
  return make_tensor(tensor.data(), Divided{})(thread, _, repeat<rank_v<T>>(_));
}

template <class Copy, class Thread, class T>
CUTE_DEVICE
auto
partition_D(Copy const&, Thread const& thread, T const& tensor)
{
  using Divided = decltype(Copy::tidfrg_D(tensor.layout()));  // (THREADS,(CPY,..),(CPY_M,CPY_N,..))
  return make_tensor(tensor.data(), Divided{})(thread, _, repeat<rank_v<T>>(_));
}
