// The numbers of steps that are not empty, one after the other.
struct Walk
{
  Steps const& all;
  int after;  // the next one, or how many steps there are

  CUTE_DEVICE explicit
  Walk(Steps const& all) : all(all), after(all.skip(0, 1)) {}

  CUTE_DEVICE
  int
  next()
  {
    int const i = after;
    after = all.skip(i + 1, 1);
    return i;
  }
};
