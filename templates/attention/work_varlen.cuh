{% include "attention/start_of.cuh" %}

// Sequence i lies between starts i - 1 and i. Sequence 0 and the last one are what lies outside: they have no keys. Starts that go
// back are taken for the furthest so far, so that no two sequences share rows. A warp looks at 32 sequences at a time.
CUTE_DEVICE
int
most_tiles(Params const& params)
{
  return params.tq / size<0>(TileQ{}) + params.starts + 1;
}

CUTE_DEVICE
int
works(Params const& params)
{
  return most_tiles(params) * params.hq;
}

CUTE_DEVICE
Work
work_of(Params const& params, int index)
{
  auto const [number, head] = idx2crd(index, make_shape(most_tiles(params), params.hq));
  int const group = head / (params.hq / params.hk);
{% include "attention/sequences.cuh" %}
}
