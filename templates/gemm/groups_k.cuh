

// Groups along K: a group is the columns of A, and rows of B, from the end of the one before to its own: inside of K, whatever
// memory says.
struct GroupOfK {
  int begin;
  int k;  // how many
};

// That of a tile at (m,n,l).
template <class Crd>
CUTE_DEVICE
GroupOfK
group_of_k(Params const& params, Crd const& crd)
{
  auto const end_of = [&](int group) {
    int const end = group < 0 ? 0 : static_cast<int const*>(params.offsets)[group];
    return cute::max(0, cute::min(end, params.k));
  };
  int const begin = end_of(get<2>(crd) - 1);
  return {begin, cute::max(end_of(get<2>(crd)) - begin, 0)};
}

// A tile's group of A (M,K), or of B (N,K).
struct PartOfK {
  Params const& params;

  template <class T, class Crd>
  CUTE_DEVICE
  auto
  operator()(T const& tensor, Crd const& crd) const
  {
    auto const [begin, k] = group_of_k(params, crd);
    auto const from = tensor.data() + begin * stride<1>(tensor);
    return make_tensor(from, make_shape(size<0>(tensor), int(k)), stride(tensor));
  }
};