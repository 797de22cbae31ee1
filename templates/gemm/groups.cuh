// Groups of rows: the coordinate of a tile is (m,n,l,begin,rows): its tile in the group, the group, its first row and its rows.
constexpr bool follow = [[ c.follow() ]];  // whether groups lie one after the other in one matrix, or each in its own

// The group's matrix, of tensors that have a mode L.
template <class T, class Crd>
CUTE_DEVICE
auto
of_batch(T const& tensor, Crd const& crd)
{
  if constexpr (T::rank > 2) {
    return tensor(_,_,get<2>(crd));
  } else {
    return tensor;
  }
}

// The same from the group's first row on.
template <class T, class Crd>
CUTE_DEVICE
auto
of_group(T const& tensor, Crd const& crd)
{
  return domain_offset(make_coord(get<3>(crd), _0{}), of_batch(tensor, crd));
}

template <class Crd>
CUTE_DEVICE
int
rows_of(Crd const& crd)
{
  return get<4>(crd);
}

// Combines the values of this lane and of all before it.
template <class Op>
CUTE_DEVICE
int
scan(int value, Op const& op)
{
  CUTE_UNROLL
  for (int lanes = 1; lanes < 32; lanes *= 2) {
    int const earlier = __shfl_up_sync(~0u, value, lanes);
    value = threadIdx.x % 32 < lanes ? value : op(earlier, value);
  }
  return value;
}
