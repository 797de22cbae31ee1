using Page = [[ c.page() ]];  // keys of a page
using Part = [[ c.part() ]];  // keys of a box: a step has one or more, each of one page
static_assert(Page{} % Part{} == 0 && size<0>(TileK{}) % Part{} == 0, "pages and steps have whole boxes");

// Where the keys of a sequence lie. An entry that names no page is taken for the nearest. Boxes behind the last key lie outside of
// all pages: TMA makes zeros of them, and no entry is read.
struct Pages
{
  int const* table;
  int pages;
  int len_k;

  CUTE_DEVICE
  Pages(Params const& params, Work const& work)
    : table(static_cast<int const*>(params.table) + work.batch * params.table_stride0),
      pages(params.pages),
      len_k(work.len_k)
  {}

  CUTE_DEVICE
  int
  of(int key) const
  {
    return key < len_k ? cute::max(0, cute::min(table[key / Page{}], pages - 1)) : pages;
  }
};

// The boxes of a step.
template <class From>
struct Boxes
{
  From const& from;  // a box by its first key
  int first;         // the first key

  CUTE_DEVICE
  Boxes(From const& from, int first) : from(from), first(first) {}
};

// Copies all boxes of a step, which complete one barrier.
template <class Copy, class From, class Dst>
CUTE_DEVICE
void
copy_all(Copy const& tma, Boxes<From> const& boxes, Dst&& dst)
{
  CUTE_NO_UNROLL
  for (int part = 0; part < size<0>(TileK{}) / Part{}; ++part) {
    copy_all(tma, get<0>(boxes.from(boxes.first + part * Part{})), dst(make_coord(make_coord(_,part))));
  }
}