  //
  // Reduce: lanes in pairs
  //

{% include "sum/lanes.cuh" %}
