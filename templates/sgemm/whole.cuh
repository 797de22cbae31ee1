  // A tile is whole if its last element lies inside of the matrix. If the last tile along K is whole, all are.
{% for f in c.factors %}{% let x = f.tile.name %}  auto const whole_[[ x ]] = [&](int k_tile) {
    return {% if f.vec > 1 %}[[ f.is_vector() ]] && {% endif %}elem_less(c[[ x ]](size<0>(c[[ x ]]) - 1, size<1>(c[[ x ]]) - 1, k_tile), shape(m[[ x ]]));
  };
{% endfor %}
