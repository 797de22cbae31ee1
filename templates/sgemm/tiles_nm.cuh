make_shape(ceil_div(params.n, size<1>(TileD{})), ceil_div(params.m, size<0>(TileD{})){% if c.d.recipe.batched %}, params.l{% endif %})
