//! MMA and copy atoms: which thread holds which value of an instruction's operands, as [`Layout`]s, and their tilings.
//!
//! An [`MmaAtom`] or [`CopyAtom`] is one PTX instruction. Its *TV layouts* map `(thread, value)` to an element. For an
//! MMA the element is the column-major index in the M x K, N x K or M x N tile of the operand, for a copy an abstract
//! bit. A [`TiledMma`] and a [`TiledCopy`] lay such atoms out over more threads and values, as CuTe's classes of the
//! same name do. Every text here is what compiled CuTe prints for the same type.
//!
//! ```
//! use cute_layout::atom::{MmaAtom, Operand, TiledMma};
//! // Volta's quadpair: eight threads hold an 8 x 8 accumulator in 32 bits.
//! let volta = MmaAtom::named("SM70_8x8x4_F32F16F16F32_NT")?;
//! assert_eq!(volta.thr_id().to_string(), "(4,2):(1,16)");
//! assert_eq!(volta.layout_tv(Operand::C).to_string(), "((2,2,2),(2,2,2)):((1,16,4),(8,2,32))");
//! // Four of them, and the permutation of M that gives each thread vectors of A.
//! let mma = TiledMma::new(volta, &"(2,2):(2,1)".parse()?, &"[(4,4,2):(1,8,4),32,4]".parse()?)?;
//! assert_eq!(mma.tile_mnk()?, [32, 32, 4]);
//! # Ok::<(), cute_layout::layout::LayoutError>(())
//! ```
//!
//! [`Layout`]: crate::layout::Layout

mod copy;
mod make_copy;
mod mma;
mod mma_table;
mod text;
mod tiled_copy;
mod tiled_mma;

pub use self::copy::CopyAtom;
pub use self::make_copy::{
    make_cotiled_copy, make_tiled_copy, make_tiled_copy_a, make_tiled_copy_b, make_tiled_copy_c, make_tiled_copy_c_atom,
};
pub use self::mma::{MmaAtom, Operand, ValueType};
pub use self::text::answer;
pub use self::tiled_copy::TiledCopy;
pub use self::tiled_mma::TiledMma;
