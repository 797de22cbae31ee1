// The epilogue inputs of a tile are prefetched into registers during its mainloop, as words, so that nvcc keeps them in registers.
// A thread's elements of one slice of each:
{%- for (t, [first, count]) in self.ahead() %}
constexpr int words_[[ t.is.param ]] = [[ first ]];  // where its [[ count ]] words begin
{%- endfor %}

// Words that a thread's elements of one slice fill.
template <class Part>
constexpr int words_of = ceil_div(sizeof_bits_v<typename Part::value_type> * cosize_v<typename Part::layout_type>, 32);

// The union converts between words and elements.
template <class Part>
union Waiting {
  uint32_t words[words_of<Part>];
  typename Part::value_type elements[cosize_v<typename Part::layout_type>];
};

template <class Part, class Words>
CUTE_DEVICE
void
leave(Part const& part, Words&& words, int first)
{
  Waiting<Part> waiting{};
  CUTE_UNROLL
  for (int i = 0; i < cosize_v<typename Part::layout_type>; ++i) {
    waiting.elements[i] = part.data()[i];
  }
  CUTE_UNROLL
  for (int i = 0; i < words_of<Part>; ++i) {
    words(first + i) = waiting.words[i];
  }
}

template <class Part, class Words>
CUTE_DEVICE
auto
take_back(Words const& words, int first)
{
  Waiting<Part> waiting{};
  CUTE_UNROLL
  for (int i = 0; i < words_of<Part>; ++i) {
    waiting.words[i] = words(first + i);
  }
  Tensor part = make_tensor<typename Part::value_type>(typename Part::layout_type{});          // (CPY,CPY_PART)
  CUTE_UNROLL
  for (int i = 0; i < cosize_v<typename Part::layout_type>; ++i) {
    part.data()[i] = waiting.elements[i];
  }
  return part;
}

// Prefetches the epilogue inputs of one slice.
template <class Crd, class Words>
CUTE_DEVICE
void
read_ahead(Params const& params, Crd const& crd_D, int part, Words&& words)
{
{%- for (t, [first, count]) in self.ahead() %}
{%- let x = t.read_name() %}
  Tensor tRr[[ x ]] = read_[[ t.is.param ]]<true, copies>(params, crd_D, 0, part, 0);                     // (CPY,CPY_PART)
  static_assert(words_of<decltype(tRr[[ x ]])> == [[ count ]], "registers of a thread for a part");
  leave(tRr[[ x ]], words, words_[[ t.is.param ]]);
{%- endfor %}
}

// AtOnce copies of a slice, starting at copy `from`.
template <int AtOnce, class Part>
CUTE_DEVICE
auto
some_of(Part const& part, int from)
{
  return logical_divide(part, make_tile(_, Int<AtOnce>{}))(_, make_coord(_, from / AtOnce));   // (CPY,AT_ONCE)
}
