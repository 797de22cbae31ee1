//! CuTe's layout algebra, exact: every accepted result satisfies its law at every coordinate.
//!
//! A [`Layout`] `S:D` is a function from coordinates to indices, written with a shape and a stride of the same profile:
//! `(4,8):(8,1)` is a 4 x 8 row-major matrix. Functions here have CuTe's names and, where CuTe is right, give the text
//! that compiled CuTe prints. Each states its *law*, the equation that its result satisfies. If no result can satisfy
//! the law, the operation is refused with a [`LayoutError`]. It says what was found, what is required, and why. Each
//! function names its *source*: a paper, or a header under CUTLASS's `include` with the name there.
//!
//! Integers are 64-bit and checked. Results of up to eight leaves need no allocation. Time depends on the number of leaves
//! and not on the size of the domain, except where an item says otherwise and names its bound.
//!
//! Leaves may be symbolic ([`Symbol`]): a name stands for any integer of at least 1 that its divisor divides. An answer with
//! names is the answer with numbers in their place, whatever numbers; where it would depend on them the request is refused.
//! Results may have modes of extent 1, or modes that could merge, for some of the numbers only.
//!
//! ```
//! use cute_layout::layout::{Layout, composition, make_layout_tv};
//! let (tiler, tv) = make_layout_tv(&"(4,32):(32,1)".parse()?, &"(4,8):(8,1)".parse()?)?;
//! assert_eq!(tiler.to_string(), "(16,256)");
//! let tile: Layout = "(16,256):(512,1)".parse()?;
//! assert_eq!(composition(&tile, &tv)?.to_string(), "((32,4),(8,4)):((8,2048),(1,512))");
//! # Ok::<(), cute_layout::layout::LayoutError>(())
//! ```

mod coalesce;
mod complement;
mod compose_any;
mod composed;
mod composition;
mod construct;
mod coord;
mod core;
mod divide;
mod error;
mod int_tuple;
mod inverse;
pub mod laws;
mod leaf;
mod number;
mod product;
mod properties;
mod reader;
mod recast;
mod shape;
mod sliced;
mod swizzle;
mod swizzled;
mod swizzled_slice;
mod symbol;
mod text;
mod tile;
mod tiler;
mod tv;
mod written;

pub use self::coalesce::{coalesce, coalesce_by, filter, filter_by, filter_zeros, filter_zeros_by, flatten, unflatten};
pub use self::complement::{complement, complement_in_cosize};
pub use self::compose_any::{compose_any, compose_any_by};
pub use self::composed::{AnyLayout, ComposedLayout, MOST_FUNCTIONS, MOST_SCANNED};
pub use self::composition::{Cute, MOST_EVENTS, MOST_VALUES, composition, composition_by, cute_verdict, with_shape};
pub use self::construct::{
    make_fragment_like, make_identity_layout, make_layout, make_layout_like, make_layout_right, make_ordered_layout,
};
pub use self::coord::{crd2crd, crd2idx, crd2idx_int, crd2idx_shape, idx2crd};
pub use self::core::Layout;
pub use self::divide::{
    append, flat_divide, group, logical_divide, prepend, replace, select, take, tiled_divide, zip, zipped_divide,
};
pub use self::error::{Class, LayoutError};
pub use self::int_tuple::{Coord, IntTuple, Modes, Shape, Stride};
pub use self::inverse::{
    MOST_INVERTED, domain_distribute, left_inverse, max_alignment, max_common_layout, max_common_vector, nullspace,
    right_inverse,
};
pub use self::leaf::{BasisPath, Elem, MAX_BASIS, MAX_DEPTH, MAX_LEAVES};
pub use self::product::{
    blocked_product, flat_product, logical_product, raked_product, tile_to_shape, tiled_product, zipped_product,
};
pub use self::properties::{
    MOST_COMPARED, is_admissible_for_complement, is_bijective, is_compact, is_injective, is_tractable, sorted,
};
pub(crate) use self::recast::element_numbers;
pub use self::recast::{downcast, recast_layout, upcast};
pub use self::shape::{
    ceil_div, ceil_div_layout, compatible, congruent, evenly_divides, inner_product, product_each, round_up, shape_div,
    weakly_congruent,
};
pub use self::sliced::{dice, domain_offset, slice, slice_and_offset};
pub use self::swizzle::Swizzle;
pub use self::swizzled::{
    left_inverse_any, logical_product_any, max_alignment_any, max_common_layout_any, max_common_vector_any, recast_any,
    right_inverse_any,
};
pub use self::swizzled_slice::{CoordKind, slice_and_offset_any};
pub use self::symbol::Symbol;
pub use self::tile::{
    inner_partition, local_partition, local_partition_step, local_tile, local_tile_step, outer_partition,
};
pub use self::tiler::Tiler;
pub use self::tv::make_layout_tv;

// The parts of the core that the line protocol, explanations and tables need.
pub(crate) use self::coalesce::{coalesced, coalesced_unbounded};
pub(crate) use self::coord::digits;
pub(crate) use self::core::Flat;
pub(crate) use self::error::mul;
pub(crate) use self::reader::Reader;
pub(crate) use self::recast::recast_ratio;
pub(crate) use self::tiler::TilerModes;
