{%- let [first, trips] = c.k_range() %}
  // This CTA's first k-tile of a tile, and its number of k-tiles. With split-K, the CTAs of a tile share its k-tiles.
  CUTE_DEVICE
  int
  first_k_tile(int of_tile) const
  {
    return [[ first ]];
  }

  CUTE_DEVICE
  int
  k_tiles(int of_tile) const
  {
    return [[ trips ]];
  }
