//! A crate with a kernel of a family that another crate brings: planned and compiled in its build script, launched with types.

cutemplate::include_kernels!();
