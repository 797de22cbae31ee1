  // A tile is whole where its last element lies inside; where the last ones are, all are.
{% for f in t.fills %}{% let x = f.matrix %}  auto const whole_[[ x ]] = [&](int k_tile) {
    return [[ f.aligned() ]]elem_less(c[[ x ]](size<0>(c[[ x ]]) - 1, size<1>(c[[ x ]]) - 1, k_tile), shape(m[[ x ]]));
  };
{% endfor %}
