//! Puts the kernels of `kernels.bundle` into the crate. `cutemplate bundle kernels.bundle --recipes kernels.txt` makes it.

fn main() {
    cutemplate::bundle::embed("kernels.bundle").recipes("kernels.txt");
}
