    auto const at    = [&](int n) { return make_coord(make_coord(_0{}, _), make_coord(m, n)); };  // a vector: (VEC)
    auto const whole = [&](int n) {
      return {% for told in c.told(2) %}[[ told ]] && {% endfor %}elem_less(
          tDcD(make_coord(_0{}, size<0,1>(tDcD) - 1), make_coord(m, n)), shape_MN);
    };
    auto const inside = [&](int n) {
      return [=](int i) { return elem_less(tDcD(at(n))(i), shape_MN); };
    };
