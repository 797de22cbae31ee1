// The matrix of a tile's batch. Without batches a tensor is a single matrix.
template <class T, class Crd>
CUTE_DEVICE
auto
of_batch(T const& tensor, Crd const& crd)
{
  if constexpr (batched) {
    return tensor(_,_,get<2>(crd));
  } else {
    return tensor;
  }
}
