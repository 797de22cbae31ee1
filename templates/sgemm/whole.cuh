  // A tile is whole where its last element lies inside; where the last ones are, all are.
  auto const whole_A = [&](int k_tile) {
    return [[ t.align_a ]]elem_less(cA(size<0>(cA) - 1, size<1>(cA) - 1, k_tile), shape(mA));
  };
  auto const whole_B = [&](int k_tile) {
    return [[ t.align_b ]]elem_less(cB(size<0>(cB) - 1, size<1>(cB) - 1, k_tile), shape(mB));
  };
