  //
  // Tensors
  //

{% for t in tensors %}{% include "tensor.cuh" %}[[ c.matrix() ]];  // [[ t.modes ]]
{% endfor %}
