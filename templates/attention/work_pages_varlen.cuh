{% include "attention/start_of.cuh" %}

// Rows of O.
CUTE_DEVICE
auto
outputs(Params const& params)
{
  return make_shape(params.hq, params.tq);
}

// Sequence i lies between starts i - 1 and i. Sequence 0 and the last one are what lies outside: they have no keys. Starts that go
// back are taken for the furthest so far, so that no two sequences share rows. A warp looks at 32 sequences at a time.
CUTE_DEVICE
Work
work_of(Params const& params, int index)
{
  int const most = params.tq * group_of(params) / size<0>(TileQ{}) + params.starts + 1;  // tiles
  auto const [number, head, split] = idx2crd(index, make_shape(most, params.hk, params.splits));
{% include "attention/sequences.cuh" %}
}