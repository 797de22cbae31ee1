// Which thread has which element, [[ w.how ]]
struct [[ w.name ]] {
  static constexpr bool whole = [[ w.whole ]];  // a vector is inside or outside of its row
{%- for alias in w.aliases %}
  using [[ alias.name ]] = [[ alias.ty ]];  // [[ alias.comment ]]
{%- endfor %}
  using Columns = [[ columns ]];
{%- for assertion in w.assertions %}
  static_assert([[ assertion.condition ]], "[[ assertion.what ]]");
{%- endfor %}
};
