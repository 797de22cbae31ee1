{%- if let Some(name) = wants %}

#ifndef [[ name ]]
#ifdef CUTE_HOST_DEVICE
#error "define [[ name ]] before CuTe's headers: without it they lack the WGMMA of this BN"
#endif
#define [[ name ]]
#endif
{%- endif %}