  //
  // Tensors
  //

{% if c.d.recipe.batched %}{% for t in tensors %}{% include "tensor.cuh" %}(_,_,l);  // [[ t.modes ]]
{% endfor %}{% else %}{% for t in tensors %}{% include "tensor.cuh" %};  // [[ t.modes ]]
{% endfor %}{% endif %}
