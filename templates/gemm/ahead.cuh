// What goes with a tile is read while its k-tiles are computed on, and waits in registers: so many words of each part.
{% for t in c.reads() %}using Part[[ t.read_name() ]] = decltype(read_[[ t.is.param ]]<true, copies>(declval<[[ c.plan.name() ]]_params const&>(), make_coord(0, 0{% if c.batched() %}, 0{% endif %}), 0, 0));
{% endfor %}
// Words of what a thread has of a part.
template <class Part>
constexpr int words_of = ceil_div(int(sizeof(typename Part::value_type)) * cosize_v<typename Part::layout_type>, int(sizeof(uint32_t)));
static_assert({% for t in c.reads() %}{% if !loop.first %} + {% endif %}words_of<Part[[ t.read_name() ]]>{% endfor %} == [[ ahead ]], "registers of a thread for a part");

// What waits is words to all who see it, so that nvcc keeps it in registers: it is copied to and from an array that is both.
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

// Reads what goes with a part.
template <class Crd, class Words>
CUTE_DEVICE
void
read_ahead([[ c.plan.name() ]]_params const& params, Crd const& crd_D, int part, Words&& words)
{
{% for t in c.reads() %}  leave(read_[[ t.is.param ]]<true, copies>(params, crd_D, part, 0), words, 0{% for before in c.reads_before(t) %} + words_of<Part[[ before.read_name() ]]>{% endfor %});
{% endfor %}}

// Of so many copies those from one on.
template <int AtOnce, class Part>
CUTE_DEVICE
auto
some_of(Part const& part, int from)
{
  return logical_divide(part, make_tile(_, Int<AtOnce>{}))(_, make_coord(_, from / AtOnce));   // (CPY,AT_ONCE)
}
