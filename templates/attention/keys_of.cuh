// Keys of a sequence, at most those that its pages and auxiliary tensors have.
CUTE_DEVICE
int
keys_of(Params const& params, int batch)
{
  int const most = params.pages > 0 ? [[ c.most() ]] : 0;
  return cute::max(0, cute::min(static_cast<int const*>(params.lengths)[batch], most));
}