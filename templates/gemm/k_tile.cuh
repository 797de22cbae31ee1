{% for t in c.factors() -%}
// The matrix of [[ t.is.name ]] that a tile multiplies. An operand may have one for all batches.
template <class Crd>
CUTE_DEVICE
int
matrix_[[ t.is.param ]](Params const& params, Crd const& crd)
{
  return [[ c.matrix_of(t) ]];
}

{% endfor -%}
// The k-tile at (x,k_tile), of matrix l where there are batches.
template <class T>
CUTE_DEVICE
auto
k_tile_at(T const& tensor, int x, int k_tile, int l)
{
  if constexpr ([[ c.is_of_several() ]]) {
    return tensor(_,x,k_tile,l);
  } else {
    return tensor(_,x,k_tile);
  }
}
