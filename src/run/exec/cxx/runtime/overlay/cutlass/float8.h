// CUTLASS's header of this name, whose conversion of f32 to 8 bits subtracts 1 from 1 << 31 for the mask of a value that is just so
// small. That overflows and wraps on every machine, as it is meant to. It is no finding of the kernel that converts: the functions of
// this header alone go without that one check.
#pragma once

#include <cutlass/cutlass.h>
#include <cutlass/exmy_base.h>
#include <cute/util/type_traits.hpp>

#pragma push_macro("CUTLASS_HOST_DEVICE")
#undef CUTLASS_HOST_DEVICE
#define CUTLASS_HOST_DEVICE __attribute__((no_sanitize("signed-integer-overflow"))) inline
#include_next <cutlass/float8.h>
#pragma pop_macro("CUTLASS_HOST_DEVICE")
