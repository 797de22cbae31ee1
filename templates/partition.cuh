// What a thread copies of a tensor in shared memory, divided as CuTe's partition_S and partition_D divide it. The layout is static and taken
// as a type, so that nvcc makes no code of what derives it, which takes it a second and more.
template <class Copy, class Thread, class T>
CUTE_DEVICE
auto
partition_S(Copy const&, Thread const& thread, T const& tensor)
{
  using Divided = decltype(Copy::tidfrg_S(tensor.layout()));                                   // (THREADS,(CPY,..),(CPY_M,CPY_N,..))
  return make_tensor(tensor.data(), Divided{})(thread, _, repeat<rank_v<T>>(_));
}

template <class Copy, class Thread, class T>
CUTE_DEVICE
auto
partition_D(Copy const&, Thread const& thread, T const& tensor)
{
  using Divided = decltype(Copy::tidfrg_D(tensor.layout()));                                   // (THREADS,(CPY,..),(CPY_M,CPY_N,..))
  return make_tensor(tensor.data(), Divided{})(thread, _, repeat<rank_v<T>>(_));
}
