// The numbers of steps that are not empty, one after the other.
struct Walk
{
  Steps const& all;
  int after;  // the next one, or how many steps there are
  int now;

  CUTE_DEVICE explicit
  Walk(Steps const& all) : all(all), after(all.skip(0, 1)), now(after) {}

  CUTE_DEVICE
  int
  next()
  {
    now   = after;
    after = all.skip(now + 1, 1);
    return now;
  }
};
