//! What each code means.

use cutemplate::arch::Arch;
use cutemplate::diagnostic::Code;

/// A recipe that gets a code.
pub(super) enum Shown {
    /// A family and its settings.
    Check(&'static str, &'static [&'static str]),
    /// The same for one architecture.
    CheckOn(&'static str, &'static [&'static str], Arch),
    /// A launch gets it, or a declaration, or an earlier check catches every cause.
    Nothing,
}

use Shown::{Check, CheckOn, Nothing};

/// A few sentences, and a recipe that gets the code.
pub(super) fn explained(code: Code) -> (&'static str, Shown) {
    match code {
        Code::UnknownSetting | Code::BadValue | Code::Name | Code::Family | Code::Declaration => of_words(code),
        Code::ThreadLayout
        | Code::ValueLayout
        | Code::VectorWidth
        | Code::VectorContiguity
        | Code::VectorAlignment
        | Code::CoversOnce
        | Code::InBounds
        | Code::TileType
        | Code::TileSize
        | Code::TileDivides
        | Code::BankConflict
        | Code::BadSwizzle => of_tiles(code),
        Code::ThreadCount
        | Code::Registers
        | Code::SharedMemory
        | Code::Unroll
        | Code::Stages
        | Code::SplitK
        | Code::Instruction
        | Code::Variant => of_resources(code),
        Code::TensorCount | Code::TensorRank | Code::TensorStride | Code::MixedTypes | Code::Expression => {
            of_tensors(code)
        }
        _ => (of_launches(code), Nothing),
    }
}

fn of_words(code: Code) -> (&'static str, Shown) {
    match code {
        Code::UnknownSetting => (
            "A recipe is read from settings, KEY=VALUE, and this key is none of its family's. `cutemplate list FAMILY` shows those \
             that there are.",
            Check("elementwise_add", &["dtyp=f32"]),
        ),
        Code::BadValue => (
            "The key is known, and its value does not follow the grammar. A mark shows the place where it is an expression.",
            Check("elementwise_apply", &["expr=a + sqrtt(b)"]),
        ),
        Code::Name => (
            "A kernel's name becomes a C++ namespace, an extern \"C\" function, a Rust module and the stem of files. It is made of \
             lower-case letters, digits and single underscores, and is no keyword. In build.rs it is the first argument of \
             Config::recipe, here --name.",
            Nothing,
        ),
        Code::Family => {
            ("A family of another crate refuses a recipe for a reason of its own. The text says which.", Nothing)
        }
        _ => (
            "A kernel of your own is declared with its tensors, scalars and grid, and this declaration cannot be read or does not fit \
             itself. See docs/own_kernels.md.",
            Nothing,
        ),
    }
}

fn of_tiles(code: Code) -> (&'static str, Shown) {
    match code {
        Code::ThreadLayout => (
            "`thr` maps a place in the tile to a thread. Each index from 0 on must appear once: of two threads with one index, one would \
             compute nothing.",
            Check("elementwise_add", &["thr=(4,64):(0,1)"]),
        ),
        Code::ValueLayout => (
            "`val` maps a place in a thread's part of the tile to the number of its value, in bytes. Each index must appear once.",
            Check("elementwise_add", &["val=(16,16):(1,1)"]),
        ),
        Code::VectorWidth => (
            "One instruction loads or stores 1, 2, 4, 8 or 16 bytes, and whole elements.",
            Check("elementwise_add", &["vector=3"]),
        ),
        Code::VectorContiguity => (
            "A vector holds bytes that lie side by side. The values that the layouts give to one instruction do not.",
            Check("elementwise_add", &["dtype=f32", "val=(8,4):(4,1)", "vector=16"]),
        ),
        Code::VectorAlignment => (
            "The GPU faults on a vector whose address is not a multiple of its size. With these layouts such an address exists.",
            Check("sgemm", &["variant=vectorized", "smem_a=pad3"]),
        ),
        Code::CoversOnce => (
            "Each element of a tile is computed by one thread, once. Compact layouts of threads and values always do, so that CT003 and \
             CT004 catch the causes before.",
            Nothing,
        ),
        Code::InBounds => (
            "A thread's value lies outside of its tile. Compact layouts never do this: CT003 and CT004 catch the causes before.",
            Nothing,
        ),
        Code::TileType => (
            "`val` counts bytes, so that one layout serves all types. Here it holds a part of an element.",
            Check("elementwise_add", &["dtype=f32", "val=(16,6):(6,1)", "vector=4"]),
        ),
        Code::TileSize => {
            ("A tile must have elements, and no more than a kernel can number.", Check("gemm", &["group=0"]))
        }
        Code::TileDivides => (
            "What threads, warps or MMAs do at a time must divide the tile, or some would have a rest to do.",
            CheckOn("gemm", &["sm80_tile=128x160x64", "sm80_stages=2"], Arch::Sm80),
        ),
        Code::BankConflict => (
            "Shared memory has 32 banks of 4 bytes, and a bank gives one word in a pass. Where lanes of a warp ask one bank for several \
             words, the warp waits. `conflicts` decides whether that is an error, a warning or nothing.",
            Check("sgemm", &["variant=pipelined", "smem_a=pad0"]),
        ),
        _ => (
            "A swizzle permutes the elements of a tile. This one needs a tile of powers of two, or tears vectors apart.",
            Check("sgemm", &["variant=vectorized", "smem_a=Sw<2,0,3>"]),
        ),
    }
}

fn of_resources(code: Code) -> (&'static str, Shown) {
    match code {
        Code::ThreadCount => (
            "A block has at most 1024 threads, and kernels want whole warps of 32.",
            Check("elementwise_apply", &["threads=2000"]),
        ),
        Code::Registers => (
            "A thread has at most 255 registers, and a multiprocessor 65536 for all its threads. What does not fit is spilled to memory.",
            Check("elementwise_add", &["val=(64,16):(16,1)", "unroll=64"]),
        ),
        Code::SharedMemory => (
            "A block that asks for more shared memory than a multiprocessor has cannot be launched.",
            Check("sgemm", &["tile=128x128x32", "stages=8"]),
        ),
        Code::Unroll => (
            "A thread loads `unroll` vectors, then computes and stores them, and begins again. The vectors must come out even.",
            Check("elementwise_add", &["val=(16,16):(16,1)", "unroll=3"]),
        ),
        Code::Stages => (
            "A pipeline multiplies one k-tile while others are loaded. That needs two stages at least, and a variant with a pipeline.",
            Check("sgemm", &["stages=1"]),
        ),
        Code::SplitK => (
            "split-K gives parts of K to CTAs of their own, whose sums are added up. Not every number of parts, and not every schedule, \
             can.",
            Check("gemm", &["split_k=3"]),
        ),
        Code::Instruction => (
            "An architecture has the instructions of those before it, and no later ones. The kernel needs one that this architecture lacks.",
            CheckOn("gemm", &[], Arch::Sm75),
        ),
        _ => (
            "A variant of a kernel is made for certain tensors and tiles. `variant=auto` takes what these allow.",
            Check("elementwise_apply", &["variant=transposed"]),
        ),
    }
}

fn of_tensors(code: Code) -> (&'static str, Shown) {
    match code {
        Code::TensorCount => (
            "Each input of the function reads one tensor, and each output writes one. The lists in the recipe have another length. A \
             product lists what its epilogue reads beside the accumulator and C in `aux`.",
            Check("elementwise_apply", &["expr=a * b", "in=f16:(?,1)"]),
        ),
        Code::TensorRank => (
            "A coordinate names one element of every tensor, so that all have one rank. A tensor with fewer modes has stride 0 along the \
             others.",
            Check("elementwise_apply", &["expr=a + b", "in=f16:(?,1), f16:1", "out=f16:(?,1)"]),
        ),
        Code::TensorStride => (
            "Strides are 1, 0 for a broadcast mode, or ? where the launch gives them. One mode at most has stride 1, and an output has \
             no stride 0.",
            Check("elementwise_apply", &["expr=a", "in=f16:(1,1)", "out=f16:(?,1)"]),
        ),
        Code::MixedTypes => (
            "With integers and floats in one function, neither f32 nor i32 is right for all values. `compute` says which you mean.",
            Check("elementwise_apply", &["in=f16:(?,1), i32:(?,1)"]),
        ),
        _ => (
            "The function can be read, and this kernel cannot compute it: an operation that its compute type lacks, or a number of \
             outputs that the family does not have.",
            Check("elementwise_apply", &["dtype=i32", "expr=exp(a) / b"]),
        ),
    }
}

/// A launch compares its views with what the kernel was generated for. None of these reaches the GPU.
fn of_launches(code: Code) -> &'static str {
    match code {
        Code::ViewCount => {
            "A launch takes one view for each operand, in the order of the plan. The module that build.rs leaves has a function `args` with their names."
        }
        Code::ViewType => "The kernel was generated for another element type. Its bits would be read as wrong numbers.",
        Code::ViewAccess => "What the kernel writes is passed as a ViewMut, what it reads as a View.",
        Code::ViewExtent => {
            "An extent counts coordinates. It may be 0: the tensor is empty then, and nothing is launched for an empty output."
        }
        Code::ViewLeadingDimension => {
            "With this stride two coordinates of an output would be one element, which threads would write in any order."
        }
        Code::ViewAlignment => {
            "An address must be a multiple of the element's size. Vectors need no more: kernels shift them where rows begin anywhere."
        }
        Code::ViewMemory => "The last element of the view lies outside of the memory that it is made of.",
        Code::ViewOverlap => {
            "Threads write the output while others still read what shares its memory. In place is possible: same address, type and strides as an input."
        }
        Code::ViewShape => {
            "The extents of the views do not belong to one problem: A of (M,K) and B of (K,N) share K, elementwise tensors share all modes."
        }
        Code::ProblemTooLarge => {
            "Coordinates are 32-bit integers, and a grid has at most 2^31 - 1 blocks. Offsets are 64-bit. Launch on parts."
        }
        Code::ViewStride => {
            "A stride that the recipe fixes, 1 or 0, is another one here. View::transposed, or another recipe, has the layout that you hold."
        }
        Code::ScalarCount => "Each run-time scalar of the function takes one value, in the order of their names.",
        _ => {
            "A kernel of your own was declared with a condition on extents or strides, and this launch does not meet it."
        }
    }
}
