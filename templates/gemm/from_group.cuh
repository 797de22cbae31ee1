// A box of A, from the first row of a tile's group on. The rows behind the group are those of others; no sum has them.
template <class T, class Row, class Crd>
CUTE_DEVICE
auto
from_group(T const& box, Row const& row, Crd const& crd)
{
  return make_tensor(box.data() + as_arithmetic_tuple(get<3>(crd) * row), box.layout());
}
