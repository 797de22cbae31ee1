      int const keys  = has_keys ? keys_of(params, at - 1) : 0;
      return {{at_q, head * group_of(params)}, {0, head}, tile * size<0>(TileQ{}), group_of(params), len_q, keys, at - 1, split};