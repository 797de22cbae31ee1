//! Puts the kernels of the library `row_sums` into this one.

fn main() {
    cutemplate::bundle::embed("../row_sums/kernels.bundle");
}
