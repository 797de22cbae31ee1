//! The declaration of an entry: its parameters in order, and how it is launched.

use super::declare::one_line;
use crate::dtype::DType;
use crate::plan::ParamType;
use crate::view::Access;

/// A `__global__` function of CUDA C++, as a build script declares it: its parameters in their order, and grid, block and shared
/// memory of a launch.
///
/// The build compares it with what nvcc made of the text: count, order, size, alignment and type of the parameters, the block, the
/// cluster, dynamic shared memory. What it cannot compare, such as which elements the function touches, the executor finds.
///
/// # Integer expressions
/// Grids, shared memory, parameters and demands are integer expressions of 64 bits, evaluated at each launch; a launch whose numbers
/// overflow is refused. They have C's operators `?:`, `||`, `&&`, comparisons, `+ - * / %`, `!`, and
///
/// | expression | value |
/// |---|---|
/// | `x.0`, `size(x, 0)` | the extent of operand `x` along mode 0 |
/// | `size(x)` | its number of coordinates |
/// | `stride(x, 0)` | its stride along mode 0, in elements |
/// | `cosize(x)` | elements from its first to one past its last; 0 where it is empty |
/// | `address(x)` | its address |
/// | a name | a value of that name, an extent that a layout names, or a scalar that is an integer |
/// | `ceil_div(a, b)`, `round_up(a, b)`, `min(a, b)`, `max(a, b)` | |
///
/// # Layouts
/// The layout of an operand is its strides, one for each of 1 to 5 modes, or a shape, `:` and strides, as CuTe writes them.
///
/// | | as an extent | as a stride |
/// |---|---|---|
/// | `?` | any | any that is not negative |
/// | `64` | 64 | 64; 1 is the contiguous mode, 0 a broadcast |
/// | `rows` | names the extent, or is the extent of that name | the value of that name |
/// | `2 * half` | the value of the expression | likewise |
///
/// Integers of 64 bits in memory are pairs of [`DType::I32`], the low half first: `(n,2):(2,1)`, at a multiple of 8 bytes.
///
/// `(rows,64):(?,1)` is a matrix of 64 contiguous columns with any leading dimension, whose number of rows is called `rows`. Every other
/// operand with a mode `rows` has that many. `(rows,n):(n,1)` has no gaps.
///
/// ```
/// use cutemplate::cuda::Entry;
/// use cutemplate::dtype::DType;
/// use cutemplate::plan::ParamType;
/// use cutemplate::view::Access;
///
/// // __global__ void rope(__half* x, float const* angles, int rows, float scale)
/// let rope = Entry::new("rope")
///     .operand("x", DType::F16, Access::ReadWrite, "(rows,64):(?,1)")
///     .operand("angles", DType::F32, Access::Read, "(rows,32):(32,1)")
///     .extent("rows", "rows")
///     .scalar("scale", ParamType::F32)
///     .grid("ceil_div(rows, 4)")
///     .block(128);
/// # drop(rope);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub(super) function: String,
    pub(super) name: Option<String>,
    pub(super) doc: String,
    pub(super) params: Vec<Param>,
    pub(super) values: Vec<(String, String)>,
    pub(super) demands: Vec<(String, String)>,
    pub(super) grid: [String; 3],
    pub(super) block: [u32; 3],
    /// Expressions for the threads of a block, where they change; `block` has the most.
    pub(super) threads: Option<[String; 3]>,
    pub(super) cluster: u32,
    pub(super) shared: Option<(String, Option<u64>)>,
    /// The declaration in a line, as it was when somebody vouched for it.
    pub(super) vouched: Option<String>,
    pub(super) deny_spills: bool,
    pub(super) max_registers: Option<u64>,
}

/// A parameter, in its order.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Param {
    Operand(Operand),
    /// An integer that follows from the others.
    Value {
        name: String,
        ty: ParamType,
        of: String,
    },
    /// A number that each launch gives.
    Scalar {
        name: String,
        ty: ParamType,
    },
    /// A pointer that is null.
    Null {
        name: String,
    },
    /// The address of memory that each launch provides, of so many bytes.
    Workspace {
        bytes: String,
    },
    /// A struct by value.
    Struct {
        name: String,
        fields: Vec<Param>,
    },
}

/// A tensor.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Operand {
    pub(super) name: String,
    pub(super) dtype: DType,
    pub(super) access: Access,
    pub(super) layout: String,
    /// Bytes that the address is a multiple of; 0 for those of an element.
    pub(super) align: u64,
    pub(super) in_place: bool,
}

/// The fields of a struct that is passed by value, by the names that they have in C++, in their order. See [`Entry::structure`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Struct {
    pub(super) fields: Vec<Param>,
}

/// What entries and structs have in common.
macro_rules! parameters {
    ($of:ident) => {
        /// The next parameter: a pointer to the first element of a tensor. [`Entry`] says what layouts are.
        #[must_use]
        pub fn operand(mut self, name: &str, dtype: DType, access: Access, layout: &str) -> Self {
            let (name, layout) = (name.to_owned(), layout.to_owned());
            self.$of.push(Param::Operand(Operand { name, dtype, access, layout, align: 0, in_place: false }));
            self
        }

        /// The next parameter: an integer of 32 bits, the value of an expression such as `x.0`. Other expressions may use its name.
        #[must_use]
        pub fn extent(self, name: &str, of: &str) -> Self {
            self.value(name, ParamType::I32, of)
        }

        /// The next parameter: an integer of 32 or 64 bits, the value of an expression. Other expressions may use its name.
        #[must_use]
        pub fn value(mut self, name: &str, ty: ParamType, of: &str) -> Self {
            self.$of.push(Param::Value { name: name.to_owned(), ty, of: of.to_owned() });
            self
        }

        /// The next parameter: a number that each launch gives, an integer or a float.
        #[must_use]
        pub fn scalar(mut self, name: &str, ty: ParamType) -> Self {
            self.$of.push(Param::Scalar { name: name.to_owned(), ty });
            self
        }

        /// The next parameter: a pointer that every launch gives as null, which the function takes for an argument that is left out.
        #[must_use]
        pub fn null(mut self, name: &str) -> Self {
            self.$of.push(Param::Null { name: name.to_owned() });
            self
        }

        /// The last operand begins at a multiple of this many bytes, a power of two: a launch refuses a view that does not. Text that
        /// loads `float4` needs 16.
        #[must_use]
        pub fn aligned(mut self, bytes: u64) -> Self {
            if let Some(Param::Operand(operand)) = self.$of.iter_mut().rev().find(|p| matches!(p, Param::Operand(_))) {
                operand.align = bytes;
            }
            self
        }
    };
}

impl Struct {
    /// No fields yet.
    pub fn new() -> Self {
        Self::default()
    }

    parameters!(fields);
}

impl Entry {
    /// The function as C++ names it from the end of the file: `rope`, `ops::rope`, `scale<3, float>`. The compiler looks it up, so that
    /// namespaces, templates and `extern "C"` need no mangled name.
    pub fn new(function: &str) -> Self {
        Self {
            function: function.to_owned(),
            name: None,
            doc: String::new(),
            params: Vec::new(),
            values: Vec::new(),
            demands: Vec::new(),
            grid: ["1", "1", "1"].map(str::to_owned),
            block: [1; 3],
            threads: None,
            cluster: 1,
            shared: None,
            vouched: None,
            deny_spills: false,
            max_registers: None,
        }
    }

    /// The name of the kernel [the letters of the function, behind the name of the text where that has several entries]: of its module, and in
    /// the compiled code.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// What the kernel does, for the documentation of its module.
    #[must_use]
    pub fn doc(mut self, text: &str) -> Self {
        self.doc = text.to_owned();
        self
    }

    parameters!(params);

    /// The next parameter: a struct by value. Its fields have the names that they have in C++: the compiler tells their offsets, sizes and
    /// types.
    #[must_use]
    pub fn structure(mut self, name: &str, fields: Struct) -> Self {
        self.params.push(Param::Struct { name: name.to_owned(), fields: fields.fields });
        self
    }

    /// The next parameter: the address of memory of so many bytes that each launch provides, at a multiple of 256. Its contents before mean
    /// nothing.
    #[must_use]
    pub fn workspace(mut self, bytes: &str) -> Self {
        self.params.push(Param::Workspace { bytes: bytes.to_owned() });
        self
    }

    /// The last operand, which is read, may be the very memory of an operand that is written, element for element.
    #[must_use]
    pub fn in_place(mut self) -> Self {
        if let Some(Param::Operand(operand)) = self.params.iter_mut().rev().find(|p| matches!(p, Param::Operand(_))) {
            operand.in_place = true;
        }
        self
    }

    /// A value that expressions may use, and that the function does not get.
    #[must_use]
    pub fn define(mut self, name: &str, of: &str) -> Self {
        self.values.push((name.to_owned(), of.to_owned()));
        self
    }

    /// What each launch has to meet: an expression that is not 0, and why. `stride(x, 0) % 8 == 0`.
    #[must_use]
    pub fn require(mut self, condition: &str, because: &str) -> Self {
        self.demands.push((condition.to_owned(), because.to_owned()));
        self
    }

    /// Blocks of the grid, along x [1 along each mode]. A grid without blocks launches nothing.
    #[must_use]
    pub fn grid(self, x: &str) -> Self {
        self.grid3([x, "1", "1"])
    }

    /// Blocks of the grid along x, y and z.
    #[must_use]
    pub fn grid3(mut self, blocks: [&str; 3]) -> Self {
        self.grid = blocks.map(str::to_owned);
        self
    }

    /// Threads of a block, along x [1 along each mode].
    #[must_use]
    pub fn block(self, x: u32) -> Self {
        self.block3([x, 1, 1])
    }

    /// Threads of a block along x, y and z.
    #[must_use]
    pub fn block3(mut self, threads: [u32; 3]) -> Self {
        (self.block, self.threads) = (threads, None);
        self
    }

    /// Threads of a block along x, y and z that change from launch to launch: expressions, and the most threads that they come to. A
    /// launch with more, or with none, is refused.
    ///
    /// ```
    /// use cutemplate::cuda::Entry;
    ///
    /// // A warp for each 32 columns.
    /// let rows = Entry::new("rows").block_of(["min(ceil_div(x.1, 32) * 32, 1024)", "1", "1"], 1024);
    /// # drop(rows);
    /// ```
    #[must_use]
    pub fn block_of(mut self, threads: [&str; 3], most: u32) -> Self {
        (self.block, self.threads) = ([most, 1, 1], Some(threads.map(str::to_owned)));
        self
    }

    /// Blocks of a cluster along x, as `__cluster_dims__` has them in the text; 1 by default.
    #[must_use]
    pub fn cluster(mut self, blocks: u32) -> Self {
        self.cluster = blocks;
        self
    }

    /// Bytes of dynamic shared memory of a block; 0 by default. Where it is no constant, at most 48 KiB: see [`Entry::shared_at_most`].
    #[must_use]
    pub fn shared(mut self, bytes: &str) -> Self {
        self.shared = Some((bytes.to_owned(), None));
        self
    }

    /// The same, at most this many bytes for every launch. Above 48 KiB not every GPU has room.
    #[must_use]
    pub fn shared_at_most(mut self, bytes: &str, most: u64) -> Self {
        self.shared = Some((bytes.to_owned(), Some(most)));
        self
    }

    /// Vouches for the kernel, so that its launch on a GPU is a safe function. It comes behind all that the declaration says: a build
    /// refuses a declaration that was changed later.
    ///
    /// # Safety
    /// The following holds in each text that the entry is given to. It holds on all views that the declaration accepts, whatever their
    /// elements and the scalars. The kernel writes only elements of operands that are declared to be written. It reads only elements of
    /// its operands, and what it wrote. Its threads do not race, and it ends. It touches no other memory of the context: no address
    /// comes from elsewhere. Tests on the executor look for all of this on the views that they launch, and prove it for no others.
    ///
    /// ```compile_fail,E0133
    /// let _ = cutemplate::cuda::Entry::new("scale").vouched();
    /// ```
    #[must_use]
    pub unsafe fn vouched(mut self) -> Self {
        self.vouched = Some(one_line(&self));
        self
    }

    /// Fails the build if nvcc spills registers of it.
    #[must_use]
    pub fn deny_spills(mut self) -> Self {
        self.deny_spills = true;
        self
    }

    /// Fails the build if a thread of it takes more registers on any architecture.
    #[must_use]
    pub fn max_registers(mut self, most: u64) -> Self {
        self.max_registers = Some(most);
        self
    }

    /// The letters of the function, as a name: `scale_3_float` for `ops::scale<3, float>`.
    pub(super) fn letters(&self) -> String {
        let whole = self.function.rsplit_once("::").filter(|(before, _)| !before.contains('<'));
        let function = whole.map_or(self.function.as_str(), |(_, last)| last);
        let words = function.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let words: Vec<String> = words.filter(|word| !word.is_empty()).map(str::to_ascii_lowercase).collect();
        words.join("_")
    }
}
