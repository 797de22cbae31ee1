//! The words of the recipe: which rung of the ladder, how A and B lie, tiles, and how tiles lie in shared memory.

use core::fmt;
use core::str::FromStr;

use crate::layout::Swizzle;
use crate::plan::ModeStride;

/// Texts of an enum: its names, `Display`, and `FromStr` with the list of what is known.
macro_rules! named {
    ($(#[$doc:meta])* $name:ident, $what:literal: $($(#[$variant_doc:meta])* $variant:ident = $text:literal,)*) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $($(#[$variant_doc])* $variant,)* }

        impl $name {
            /// All of them, in order.
            pub const ALL: &'static [$name] = &[$($name::$variant,)*];

            /// Its name in settings.
            pub fn name(self) -> &'static str {
                match self { $($name::$variant => $text,)* }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }

        impl FromStr for $name {
            type Err = UnknownWord;

            fn from_str(text: &str) -> Result<Self, UnknownWord> {
                $name::ALL.iter().copied().find(|v| v.name() == text).ok_or_else(|| UnknownWord {
                    found: text.to_owned(),
                    what: $what,
                    known: $name::ALL.iter().map(|v| v.name()).collect::<Vec<_>>().join(", "),
                })
            }
        }
    };
}

/// A word that means nothing here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{found}` is no {what}; known are {known}")]
pub struct UnknownWord {
    found: String,
    what: &'static str,
    known: String,
}

named! {
    /// The rungs of the ladder of Simon Boehm's "How to Optimize a CUDA Matmul Kernel", in CuTe's idiom, and a pipeline above
    /// them.
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

named! {
    /// Along which mode a matrix is contiguous.
    Major, "storage order":
    /// The last: rows are contiguous, `(?,1)`.
    #[default]
    Row = "row",
    /// The first: columns are contiguous, `(1,?)`.
    Col = "col",
}

impl Major {
    /// Its name in Rust.
    pub(crate) fn variant(self) -> &'static str {
        match self {
            Major::Row => "Row",
            Major::Col => "Col",
        }
    }

    /// The strides of a matrix that lies so.
    pub(super) fn strides(self) -> [ModeStride; 2] {
        match self {
            Major::Row => [ModeStride::Dynamic, ModeStride::Unit],
            Major::Col => [ModeStride::Unit, ModeStride::Dynamic],
        }
    }
}

/// Extents as text `128x128x16`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Extents<const N: usize>(pub [u32; N]);

impl<const N: usize> fmt::Display for Extents<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.map(|e| e.to_string()).join("x"))
    }
}

impl<const N: usize> FromStr for Extents<N> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Result<Vec<u32>, _> = text.split('x').map(|part| part.trim().parse()).collect();
        let extents = parts.ok().and_then(|parts| <[u32; N]>::try_from(parts).ok());
        extents
            .map(Self)
            .ok_or_else(|| format!("{N} numbers with x between them are read, such as {}", ["8"; N].join("x")))
    }
}

/// How a tile lies in shared memory, besides the mode that is contiguous.
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
        .ok_or_else(|| format!("`{text}` is none of auto, pad4 (elements between columns) and Sw<2,3,3> (a swizzle)"))
    }
}
