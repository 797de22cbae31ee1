{% if score.emptied.is_empty() -%}
[[ score.helpers ]]
{% endif -%}
[[ score.functor ]]
// The elements of a tensor for the queries and keys of the work.
template <class Work, class Of, class Strides>
CUTE_DEVICE
auto
auxiliary(Params const& params, Work const& work, Of const* ptr, Strides const& strides)
{
  auto const own = take<rank_v<Strides> - 3, rank_v<Strides>>(strides);
  int64_t first = 0;
  if constexpr (Work::packed) {
    first = work.q.sequence * get<1>(own) + work.k.sequence * get<2>(own);
  } else {
    first = work.batch * get<0>(strides);
  }
  return make_tensor(make_gmem_ptr(ptr + first), make_shape(params.hq, work.len_q, work.len_k), own);  // (HQ,SQ,SK)
}

// Scores become what the function makes of them, of their batch, head, query and key, and of auxiliary elements.
// A query has the number of the key that it is aligned with.
struct Scoring
{
  static constexpr bool reads = [[ c.recipe.reads_keys() ]];  // elements of keys, which lie among them
  static constexpr float scale = 1.44269504088896f;  // of scores to base 2

  float given;  // a scale of 0 has made products 0
  Op op;

  CUTE_DEVICE
  Scoring(Params const& params) : given(params.scale == 0 ? 1 : fabsf(params.scale)), op{[[ score.scalars ]]} {}

  template <class Scores, class Crd>
  CUTE_DEVICE
  void
  apply(Params const& params, Work const& work, Scores&& scores, Crd const& crd, int key) const
  {
{%- for t in score.aux %}
    auto const ptr_[[ t.is.name ]] = static_cast<[[ t.element ]] const*>(params.[[ t.is.param ]]);
    Tensor m[[ t.is.name ]] = auxiliary(params, work, ptr_[[ t.is.name ]], [[ t.strides ]]);  // (HQ,SQ,SK)
{%- endfor %}
{%- for t in score.of_rows() %}
    Tensor row[[ t.is.name ]] = make_tensor<float>(make_shape(size<0>(scores)));  // (ROWS), the same for all keys
    CUTE_UNROLL
    for (int row = 0; row < size<0>(scores); ++row) {
      int const q = work.query(get<0>(crd(row,_0{})));
      int const h = work.head(get<0>(crd(row,_0{})));
      row[[ t.is.name ]](row) = q < work.len_q ? [[ t.at("(h,q,_0{})") ]] : 0;
    }
{%- endfor %}
    float const batch = work.batch;
    // Columns outside: what the rows of a column share is not held for all columns.
    CUTE_UNROLL
    for (int n = 0; n < size<1>(scores); ++n) {
      CUTE_UNROLL
      for (int row = 0; row < size<0>(scores); ++row) {
        int const q      = work.query(get<0>(crd(row,_0{})));
        float const own  = q + work.len_k - work.len_q;
        int const h      = work.head(get<0>(crd(row,_0{})));
        float const head = h;
        int const k      = key + get<1>(crd(row,n));
        if (!reads || (q < work.len_q && k < work.len_k)) {
          float const score = __fmul_rn(scores(row,n), given);
          scores(row,n) = op(score, batch, head, own, float(k)[[ score.arguments() ]]);
        }
      }
    }
  }
};
