// The numbers of steps that are not empty, one after the other. The first one is not.
struct Walk
{
  Steps const& all;
  int after = 0;  // the next one, or how many steps there are

  CUTE_DEVICE
  int
  next()
  {
    int const i = after;
    after = all.skip(i + 1, 1);
    return i;
  }
};
