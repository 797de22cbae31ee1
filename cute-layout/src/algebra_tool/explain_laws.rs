//! The law of each operation of the protocol, in words, for derivations.

/// The law of an operation's result; empty for an unknown operation.
pub(super) fn law(op: &str) -> &'static str {
    match op {
        "composition" => "R(c) = A(B(c)) for every coordinate c of B, and B's modes are R's",
        "with_shape" => "result(i) = layout(i) for every index i of the shape, and the shape's modes are the result's",
        "complement" => "the result increases, meets the layout in 0 only, and (layout, result) is injective",
        "coalesce" => "the same value at every index, in at most one level; with a profile, mode by mode",
        "filter" => "the same image without repetition by stride-0 modes",
        "filter_zeros" => {
            "modes of stride 0, or those that the profile marks with 0, have extent 1; the image is the same"
        }
        "right_inverse" => "layout(result(i)) = i",
        "left_inverse" => "layout(result(layout(i))) = layout(i)",
        "logical_divide" | "zipped_divide" | "tiled_divide" | "flat_divide" => {
            "result = layout o (tiler, complement(tiler, size)), mode by mode; then regrouped"
        }
        "logical_product" | "zipped_product" | "tiled_product" | "flat_product" => {
            "result = (block, complement(block, size(block) * cosize(tiler)) o tiler); then regrouped"
        }
        "blocked_product" => "modes are (block mode, tiler mode): copies stand side by side",
        "raked_product" => "modes are (tiler mode, block mode): copies are interleaved",
        "make_layout_tv" => "raked_product(threads, values) at tv(t, v) is t + v * size(threads)",
        "upcast" | "downcast" | "recast_layout" => {
            "the same bytes, each as often and block by block, in elements of another size"
        }
        "nullspace" => "layout(result(i)) = 0",
        other => law_of_making(other),
    }
}

fn law_of_making(op: &str) -> &'static str {
    match op {
        "make_layout" => "the value at index i is i",
        "make_ordered_layout" | "make_layout_right" => "the image is 0 .. size, strides grow in the given order",
        "make_layout_like" => "compact, in the order of the layout's strides; strides of 0 stay",
        "make_fragment_like" => "compact; mode 0 first, the others in the order of their strides",
        "make_identity_layout" => "the value at a coordinate is the coordinate",
        "make_swizzle" => "the bits of the first mask are exclusive-ored into those of the second",
        "tile_to_shape" => "the block, repeated until its shape is the target's",
        "max_common_layout" | "max_common_vector" => "a(result(i)) = i and b(result(i)) = i",
        "max_alignment" => "the largest n such that runs of n values begin at multiples of n",
        "domain_distribute" => "the result's values increase, and its size divides the given size",
        "slice_and_offset" | "slice" => "layout(coordinate with _ filled) = offset + slice(what was filled in)",
        "dice" => "the modes that have an integer in the coordinate",
        "flatten" | "group" => "the same value at every index",
        "unflatten" => "the same value at every index, in the parentheses of the profile",
        "zip" => "mode (i, j) of the result is mode (j, i) of the layout",
        "append" | "prepend" => "the same values where the added modes are at 0",
        "replace" => "one mode is the given one, the others are the layout's",
        "take" | "select" => "the result's modes are the layout's with these indices",
        "sorted" => "the same modes, in the order of their strides",
        other => law_of_numbers(other),
    }
}

fn law_of_numbers(op: &str) -> &'static str {
    match op {
        "crd2idx" | "eval" => "the sum of each coordinate times its stride",
        "idx2crd" => "colexicographic: the first mode counts fastest, the last has no bound",
        "crd2crd" => "the coordinate of the second shape with the same index",
        "vals" => "the values at the indices 0 .. size",
        "swizzle_vals" => "the values at the indices 0 .. count",
        "size" => "the product of the extents",
        "rank" => "the number of modes",
        "depth" => "how deep parentheses stand inside each other",
        "cosize" => "one more than the largest distance of a value from the value at 0",
        "coshape" => "the smallest shape that holds every value",
        "compatible" => "at each leaf of the first, the second has the same size",
        "congruent" => "the same parentheses",
        "weakly_congruent" => "wherever the first has a tuple, the second has one of the same rank",
        "evenly_divides" => "the division by the tiler has the size of the shape",
        "ceil_div" => "at each leaf the least q with q * divisor >= extent",
        "shape_div" => "extent / divisor where that is whole; 1 where the extent divides the divisor",
        "round_up" => "at each leaf the least multiple of the second that is not below the first",
        "is_injective" => "no two indices have the same value",
        "is_bijective" => "the values are 0 .. size, each once",
        "is_compact" => "without its zero strides the layout is a bijection onto 0 .. size",
        "is_tractable" => "in the order of strides, each extent times its stride divides the next stride",
        "is_admissible_for_complement" => {
            "in the order of strides, each extent times its stride divides the next stride, and the last divides the size"
        }
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_has_a_law() {
        for op in crate::algebra_tool::ops() {
            assert!(!law(op.name).is_empty(), "{}", op.name);
        }
    }
}
