      int const at_k  = has_keys ? start_of(params.startsk, at - 1, params.tk) : 0;
      int const end_k = has_keys ? start_of(params.startsk, at, params.tk) : 0;
      Place const keys{at_k, group};
      int const of_sequence = ceil_div(len_q, size<0>(TileQ{}));
      int const first_q = first_query(tile, of_sequence);
      return {{at_q, head}, keys, keys, first_q, len_q, cute::max(0, end_k - at_k), at - 1};