// A resident operand. Where the number of k-tiles divides the number of stages, each stage always holds the same k-tile.
// It is loaded again only when another tile of the operand is needed.
struct Residency {
  int lacks = 0;  // stages that hold another tile
  int tile = -1;
  int l = -1;

  CUTE_DEVICE
  void
  want(int tile, int l)
  {
    if (tile != this->tile || l != this->l) {
      lacks = size<2>(SmemA{});
      this->tile = tile;
      this->l = l;
    }
  }

  CUTE_DEVICE
  void
  loaded(Params const& params)
  {
    lacks -= params.stays;
  }
};
