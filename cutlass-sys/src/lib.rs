//! Finds or provides CUTLASS headers and a CUDA toolkit.
