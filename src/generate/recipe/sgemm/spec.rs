//! The words of the recipe: which rung of the ladder, and how tiles lie in shared memory.

use core::fmt;
use core::str::FromStr;

use crate::layout::Swizzle;
use crate::settings::named;

named! {
    /// The rungs of the ladder of Simon Boehm's "How to Optimize a CUDA Matmul Kernel", in CuTe's idiom, and a pipeline above
    /// them.
    #[derive(Default)]
    Variant, "variant":
    /// One thread for one element, neighbouring threads along M.
    Naive = "naive",
    /// One thread for one element, neighbouring threads along N.
    Coalesced = "coalesced",
    /// Tiles of A and B in shared memory, one element a thread.
    SmemTiled = "smem_tiled",
    /// The same with a column of elements a thread.
    Block1d = "block_1d",
    /// The same with a tile of elements a thread, outer products in registers.
    Block2d = "block_2d",
    /// 16-byte loads of global and shared memory, tiles in shared memory contiguous along M and N, the next one on its way.
    Vectorized = "vectorized",
    /// The same with the threads of a warp in a tile of their own.
    WarpTiled = "warp_tiled",
    /// Asynchronous copies in several stages, registers filled one k ahead.
    #[default]
    Pipelined = "pipelined",
}

impl Variant {
    /// Whether the threads compute through a `TiledMMA`.
    pub(super) fn has_mma(self) -> bool {
        matches!(self, Variant::Vectorized | Variant::WarpTiled | Variant::Pipelined)
    }

    /// One line for the head of the text.
    pub(super) fn what(self) -> &'static str {
        match self {
            Variant::Naive => "one thread for one element of D, neighbours along M",
            Variant::Coalesced => "one thread for one element of D, neighbours along N",
            Variant::SmemTiled => "tiles in shared memory, one element of D a thread",
            Variant::Block1d => "tiles in shared memory, a column of D a thread",
            Variant::Block2d => "tiles in shared memory, a tile of D a thread",
            Variant::Vectorized => "tiles in shared memory, vectors everywhere, the next tile on its way in registers",
            Variant::WarpTiled => "vectors everywhere, each warp with a tile of its own",
            Variant::Pipelined => "asynchronous copies in stages, registers one k ahead",
        }
    }
}

/// The layout of a tile in shared memory, apart from its contiguous mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SmemLayout {
    /// The smallest padding with the fewest passes over the banks.
    #[default]
    Auto,
    /// Elements of padding between columns, 0 for none.
    Pad(u32),
    /// Without padding, behind a swizzle.
    Swizzled(Swizzle),
}

impl fmt::Display for SmemLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SmemLayout::Auto => f.write_str("auto"),
            SmemLayout::Pad(pad) => write!(f, "pad{pad}"),
            SmemLayout::Swizzled(swizzle) => write!(f, "{swizzle}"),
        }
    }
}

impl FromStr for SmemLayout {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let pad = || text.strip_prefix("pad")?.parse().ok().map(SmemLayout::Pad);
        match text {
            "auto" => Some(SmemLayout::Auto),
            _ => pad().or_else(|| text.parse().ok().map(SmemLayout::Swizzled)),
        }
        .ok_or_else(|| {
            format!("`{text}` is not one of auto, pad4 (elements between columns) and Sw<2,3,3> (a swizzle)")
        })
    }
}
