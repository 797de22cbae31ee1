// A box at some k later.
template <class T, class Step>
CUTE_DEVICE
auto
later(T const& box, Step const& step)
{
  return make_tensor(box.data() + as_arithmetic_tuple(step), box.layout());
}
