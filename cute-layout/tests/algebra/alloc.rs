//! Layouts of up to eight leaves are kept in place: no operation that the rest is built from asks for memory.

use std::hint::black_box;

use crate::memory;
use cute_layout::layout::{
    Coord, IntTuple, Layout, Tiler, blocked_product, coalesce, complement, complement_in_cosize, composition,
    composition_by, crd2idx, crd2idx_int, filter, flat_divide, left_inverse, logical_divide, logical_product,
    make_layout, max_common_vector, raked_product, right_inverse, tiled_divide, zipped_divide,
};

/// How often `work` asks for memory.
fn asked<R>(work: impl FnOnce() -> R) -> u64 {
    let before = memory::asked();
    let result = black_box(work());
    let after = memory::asked();
    drop(result);
    after - before
}

fn layout(text: &str) -> Layout {
    text.parse().expect("a layout")
}

fn tiler(text: &str) -> Tiler {
    text.parse().expect("a tiler")
}

/// Layouts of one to eight leaves: compact, permuted, padded, with zeros and ones, nested.
fn layouts() -> Vec<Layout> {
    [
        "24:1",
        "(4,6):(6,1)",
        "(4,(2,3)):(1,(16,4))",
        "((2,2),(2,3)):((12,1),(6,2))",
        "(2,1,(3,4),2):(1,0,(4,12),2)",
        "((2,2),2,(2,2),2):((1,4),2,(8,32),16)",
        "(2,2,2,2,2,2,2):(64,1,32,2,16,4,8)",
        "((2,2),(2,2),(2,2),(2,2)):((1,16),(2,32),(4,64),(8,128))",
    ]
    .map(layout)
    .into()
}

/// Fails with the operation's name where it asked for memory; the result must be a result.
fn free<R>(name: &str, of: &dyn std::fmt::Display, work: impl Fn() -> Option<R>) {
    assert!(work().is_some(), "{name} of {of} is refused");
    let count = asked(work);
    assert_eq!(count, 0, "{name} of {of} asks for memory {count} times");
}

#[test]
fn the_counter_counts() {
    assert_eq!(asked(|| vec![1u8; 10]), 1);
    assert!(asked(|| layout("(1,2,3,4,5,6,7,8,9):(0,0,0,0,0,0,0,0,0)")) > 0, "nine leaves do not fit in place");
}

#[test]
fn one_operand() {
    for a in layouts() {
        free("coalesce", &a, || coalesce(&a).ok());
        free("filter", &a, || filter(&a).ok());
        free("right_inverse", &a, || right_inverse(&a).ok());
        free("clone", &a, || Some(a.clone()));
        free("make_layout", &a, || make_layout(a.shape()).ok());
        free("complement", &a, || complement(&a, &4096.into()).ok());
        free("complement", &a, || complement(&a, &IntTuple::from((64, (8, 8)))).ok());
        free("complement_in_cosize", &a, || complement_in_cosize(&a).ok());
        free("left_inverse", &a, || left_inverse(&a).ok());
        free("max_common_vector", &a, || max_common_vector(&a, &a).ok());
    }
}

#[test]
fn composition_and_coordinates() {
    for a in layouts() {
        for b in ["2:1", "4:1", "(2,2):(1,2)", "(1,2):(7,1)", "(2,2):(0,1)"].map(layout) {
            free("composition", &a, || composition(&a, &b).ok());
        }
        let identity = make_layout(a.shape()).expect("a compact layout");
        free("composition with the identity", &a, || composition(&a, &identity).ok());
        let whole = Coord::from(a.size() - 1);
        free("crd2idx", &a, || crd2idx(&whole, &a).ok());
        free("at", &a, || a.at(a.size() - 1).ok());
        let zeros = cute_layout::layout::idx2crd(&0.into(), a.shape()).expect("a coordinate");
        free("crd2idx_int", &a, || crd2idx_int(&zeros, &a).ok());
    }
    // Steps that are not aligned with A's modes.
    let (a, b) = (layout("(4,6):(6,1)"), layout("(2,3):(3,8)"));
    free("composition, not aligned", &a, || composition(&a, &b).ok());
}

#[test]
fn divisions_and_products() {
    let a = layout("(8,6):(6,1)");
    for by in ["4:1", "(2,2):(1,8)", "(4,2)", "[2:1,3:2]", "[4:1,_]"].map(tiler) {
        free("logical_divide", &by, || logical_divide(&a, &by).ok());
        free("composition_by", &by, || composition_by(&a, &by).ok());
    }
    for by in ["4:1", "(4,2)", "[2:1,3:2]"].map(tiler) {
        free("zipped_divide", &by, || zipped_divide(&a, &by).ok());
        free("tiled_divide", &by, || tiled_divide(&a, &by).ok());
        free("flat_divide", &by, || flat_divide(&a, &by).ok());
    }
    let (block, copies) = (layout("(2,5):(5,1)"), layout("(3,4):(1,3)"));
    let by = Tiler::Layout(copies.clone());
    free("logical_product", &by, || logical_product(&block, &by).ok());
    free("blocked_product", &by, || blocked_product(&block, &copies).ok());
    free("raked_product", &by, || raked_product(&block, &copies).ok());
}
