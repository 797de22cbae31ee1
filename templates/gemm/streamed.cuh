// Every k-tile is loaded: no stage holds the right one already.
struct Residency {
  static constexpr int lacks = 1;

  CUTE_DEVICE void want(int, int) const {}
  CUTE_DEVICE void loaded(Params const&) const {}
};
