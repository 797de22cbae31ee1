      int const of_sequence = ceil_div(len_q, size<0>(TileQ{}));
      int const first_q = first_query(tile, of_sequence);
      return {{at_q, head}, {0, group}, {0, group}, first_q, len_q, has_keys ? keys_of(params, at - 1) : 0, at - 1};