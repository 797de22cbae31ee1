// The rows of a head: of a batch, or those from the first row of a sequence on.
template <int Rows, class T>
CUTE_DEVICE
auto
rows_of(T const& all, int head, int64_t sequence, int64_t apart)
{
  if constexpr (rank_v<T> == 4) {
    return all(_,_,head,int(sequence * apart));
  } else {
    return domain_offset(replace<Rows>(make_coord(_0{}, _0{}), int(sequence)), all(_,_,head));
  }
}
{% for t in c.rows %}
// [[ t.name ]] of a head of a sequence, as TMA coordinates. Heads, or batches, that are all the same one are 0 apart.
CUTE_DEVICE
auto
[[ t.param ]]_of(Params const& params, Place const& at)
{
  Tensor all = Tma[[ t.name ]]{}.get_tma_tensor([[ t.shape ]]);  // (..) -> TMA coordinate
  int const head = int(at.head * params.[[ t.param ]]_head);
  return rows_of<[[ t.along ]]>(all, head, at.sequence, params.[[ t.param ]]_[[ c.recipe.modes(t.param)[0] ]]);
}
{% endfor %}
