//! The keys of launch files: one table, which the reader, the documentation and the tests take from here.

use crate::tensor_map::MOST_MODES;

/// What a key takes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// A string.
    Text,
    /// A path, relative to the launch file.
    Path,
    Flag,
    /// A whole number.
    Whole {
        least: u64,
        most: u64,
    },
    /// A value of an integer type.
    Integer {
        bits: u32,
        is_signed: bool,
    },
    /// A value of a float type, with the type's largest number.
    Float {
        most: f64,
    },
    /// Bytes, two digits each.
    Hex,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A list of these words.
    Words(&'static [&'static str]),
    /// One of these numbers.
    OneOf(&'static [u64]),
    /// A list of whole numbers.
    Numbers {
        least: usize,
        most: usize,
        from: u64,
        to: u64,
    },
    /// The number of an argument, or the name of a buffer.
    Memory,
    /// A list of objects.
    List(&'static Object),
    One(&'static Object),
    /// An object of objects, whose keys are names.
    Named(&'static Object),
}

/// When a key may or must be present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    Always,
    Optional,
    /// It names the kind of the object. An object has only one of these keys.
    Form,
    /// Only together with one of these.
    With(&'static [&'static str]),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Key {
    pub(super) name: &'static str,
    pub(super) need: Need,
    pub(super) kind: Kind,
    pub(super) meaning: &'static str,
    /// An accepted value, as JSON.
    pub(super) example: &'static str,
}

/// A kind of object.
#[derive(Debug)]
pub(super) struct Object {
    /// Its name, with the article.
    pub(super) name: &'static str,
    pub(super) keys: &'static [&'static [Key]],
    /// Whether it needs one of the keys with [`Need::Form`].
    pub(super) has_form: bool,
}

impl Object {
    pub(super) fn keys(&self) -> impl Iterator<Item = &'static Key> + Clone + use<> {
        self.keys.iter().copied().flatten()
    }

    pub(super) fn forms(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.keys().filter(|key| key.need == Need::Form).map(|key| key.name)
    }
}

use Kind::*;
use Need::{Always, Form, Optional, With};

const U32: u64 = u32::MAX as u64;

/// A table of keys: need, accepted values, example, meaning.
macro_rules! keys {
    ($($name:literal $need:expr, $kind:expr, $example:literal: $meaning:literal;)*) => {
        &[$(Key { name: $name, need: $need, kind: $kind, meaning: $meaning, example: $example }),*]
    };
}

/// Every kind of object, outermost first.
pub(super) static OBJECTS: [&Object; 9] =
    [&FILE, &LAUNCH, &ARGUMENT, &MEMBER, &TENSOR_MAP, &BUFFER, &VARIABLE, &EXPECTATION, &ALLOW];

pub(super) static FILE: Object = Object { name: "the file", keys: &[FILE_KEYS], has_form: false };
pub(super) static LAUNCH: Object = Object { name: "the launch", keys: &[LAUNCH_KEYS], has_form: false };
pub(super) static ARGUMENT: Object = Object { name: "the argument", keys: &[MEMORY, VALUES, STRUCT], has_form: true };
pub(super) static MEMBER: Object = Object { name: "the member", keys: &[AT, MEMORY, VALUES], has_form: true };
pub(super) static TENSOR_MAP: Object = Object { name: "the tensor map", keys: &[MAP_KEYS], has_form: true };
pub(super) static BUFFER: Object = Object { name: "the buffer", keys: &[BUFFER_KEYS], has_form: true };
pub(super) static VARIABLE: Object = Object { name: "the variable", keys: &[VARIABLE_KEYS], has_form: false };
pub(super) static EXPECTATION: Object = Object { name: "the expectation", keys: &[EXPECTATION_KEYS], has_form: false };
pub(super) static ALLOW: Object = Object { name: "the allowance", keys: &[ALLOW_KEYS], has_form: false };

/// Kinds of findings that a launch may allow: the kernel continues after them.
pub(super) const ALLOWED: &[&str] = &[
    "exec-out-of-bounds",
    "exec-misaligned",
    "exec-write-to-input",
    "exec-uninitialized",
    "exec-race",
    "exec-barrier",
    "exec-asynchrony",
    "exec-tensor-map",
];

const SIZES: Kind = Numbers { least: 1, most: 3, from: 1, to: U32 };
const MODES: &[&str] = &["plain", "bounds", "init", "races", "all"];

/// Of a file whose launches share memory.
const FILE_KEYS: &[Key] = keys! {
    "launches" Always, List(&LAUNCH), "[{\"ptx\": \"k.ptx\", \"entry\": \"scale\", \"grid\": [3], \"block\": [32], \"args\": []}]":
        "the launches, which run in order";
    "buffers" Optional, Named(&BUFFER), "{\"all\": {\"npy\": \"x.npy\"}}":
        "memory with a name, for `of` in any launch; it passes from one launch to the next";
};

const LAUNCH_KEYS: &[Key] = keys! {
    "ptx" Always, Path, "\"k.ptx\"": "the PTX text";
    "entry" Always, Text, "\"scale\"": "the name of the entry, or a part that no other entry's name has";
    "grid" Always, SIZES, "[3]": "blocks in x, y and z, 1 where left out";
    "block" Always, SIZES, "[32]": "threads in x, y and z, 1 where left out";
    "args" Always, List(&ARGUMENT), "[{\"i32\": 70}]": "the arguments, in the entry's order";
    "cluster" Optional, SIZES, "[1]": "blocks of a cluster, where the entry does not say it";
    "cooperative" Optional, Flag, "true": "whether all blocks are resident, as `grid.sync()` needs [false]";
    "programmatic" Optional, Flag, "false": "whether the grid begins while the kernel before it ends (PDL) [false]";
    "dynamic_smem" Optional, Whole { least: 0, most: U32 }, "0": "dynamic shared memory of a block, in bytes [0]";
    "buffers" Optional, Named(&BUFFER), "{\"all\": {\"npy\": \"x.npy\"}}": "memory with a name, for `of`";
    "variables" Optional, Named(&VARIABLE), "{\"lut\": {\"npy\": \"lut.npy\"}}":
        "`__device__` and `__constant__` variables, by name or by a part that no other variable's name has";
    "modes" Optional, Words(MODES), "[\"bounds\", \"races\"]": "checks beyond those of every run [plain]";
    "seed" Optional, Whole { least: 0, most: u64::MAX }, "0":
        "decides the order of warps and blocks, and when asynchronous work happens [0]";
    "step_budget" Optional, Whole { least: 1, most: u64::MAX }, "2000000000":
        "warp instructions that the launch may take [10^9]";
    "placement" Optional, Word(&["driver", "exact"]), "\"exact\"":
        "`driver`: allocations at multiples of 256 bytes, shared memory of 1024; `exact`: at the declared alignment, no better [driver]";
    "tensor_cores" Optional, Word(&["fast", "hopper", "ampere"]), "\"hopper\"":
        "how sums are made: `fast` in f32, `hopper` as an H200 bit by bit, `ampere` as an A100, from the paper [fast]";
    "allow" Optional, List(&ALLOW), "[{\"source\": \"k.cu:12\"}]": "findings that are counted and printed, and fail nothing";
};

/// Memory that a pointer points to.
const MEMORY: &[Key] = keys! {
    "npy" Form, Path, "\"x.npy\"": "a pointer to the elements of this array, in the order of the file";
    "out" With(&["npy"]), Path, "\"x_out.npy\"": "where the array is written after the launch; without it the kernel only reads it";
    "written" With(&["npy"]), Flag, "false": "false: nobody has written the memory, and the array says only how large it is [true]";
    "expect" With(&["npy", "scratch"]), One(&EXPECTATION), "{\"npy\": \"x.npy\", \"relative\": 1e-3}": "what the memory has to hold after the launch";
    "scratch" Form, Whole { least: 0, most: 16 << 30 }, "256": "a pointer to so many bytes that nobody has written";
    "of" Form, Memory, "0": "a pointer to the memory of another argument, by its number from 0, or of a name in `buffers`";
    "byte" With(&["npy", "scratch", "of"]), Whole { least: 0, most: 1 << 40 }, "0": "where in the memory it points [0]";
    "tensor_map" Form, One(&TENSOR_MAP), "{\"npy\": \"x.npy\", \"dtype\": \"f32\", \"dims\": [64], \"box\": [16]}":
        "a tensor map, as `cuTensorMapEncodeTiled` is told";
};

const fn integer(bits: u32, is_signed: bool) -> Kind {
    Integer { bits, is_signed }
}

/// Values of parameters.
const VALUES: &[Key] = keys! {
    "i8" Form, integer(8, true), "-5": "an integer of 8 bits";
    "i16" Form, integer(16, true), "-5": "an integer of 16 bits";
    "i32" Form, integer(32, true), "-5": "an integer of 32 bits";
    "i64" Form, integer(64, true), "-5": "an integer of 64 bits";
    "u8" Form, integer(8, false), "5": "an unsigned integer of 8 bits";
    "u16" Form, integer(16, false), "5": "an unsigned integer of 16 bits";
    "u32" Form, integer(32, false), "5": "an unsigned integer of 32 bits";
    "u64" Form, integer(64, false), "5": "an unsigned integer of 64 bits";
    "f16" Form, Float { most: 65504.0 }, "0.5": "a number, rounded to f16";
    "bf16" Form, Float { most: 3.3895313892515355e38 }, "0.5": "a number, rounded to bf16";
    "f32" Form, Float { most: f32::MAX as f64 }, "0.5": "a number, rounded to f32";
    "f64" Form, Float { most: f64::MAX }, "0.5": "a number";
    "bytes" Form, Hex, "\"00ff\"": "the bytes of the parameter, of any type";
};

const STRUCT: &[Key] = keys! {
    "struct" Form, List(&MEMBER), "[{\"at\": 0, \"i32\": 5}]": "a struct by value: its members; other bytes are 0";
};

const AT: &[Key] = keys! {
    "at" Always, Whole { least: 0, most: 32764 }, "8": "bytes before the member in its struct";
};

const MAP_KEYS: &[Key] = keys! {
    "npy" Form, Path, "\"x.npy\"": "the array that the tensor lies in";
    "out" With(&["npy"]), Path, "\"x_out.npy\"": "where the array is written after the launch";
    "written" With(&["npy"]), Flag, "false": "false: nobody has written the memory [true]";
    "expect" With(&["npy"]), One(&EXPECTATION), "{\"npy\": \"x.npy\", \"relative\": 1e-3}": "what the array has to hold after the launch";
    "of" Form, Memory, "1": "the tensor lies in the memory of an argument, by its number from 0, or of a name in `buffers`";
    "byte" Optional, Whole { least: 0, most: 1 << 40 }, "0": "where in the memory the tensor begins [0]";
    "dtype" Always, Text, "\"f16\"": "the type of the elements";
    "dims" Always, Numbers { least: 1, most: MOST_MODES, from: 1, to: 1 << 32 }, "[64, 128]": "extents, the contiguous mode first";
    "strides" Optional, Numbers { least: 0, most: MOST_MODES - 1, from: 0, to: 1 << 40 }, "[128]":
        "strides of the modes after the first, in bytes";
    "box" Always, Numbers { least: 1, most: MOST_MODES, from: 1, to: 256 }, "[64, 32]": "extents of the box";
    "swizzle" Optional, OneOf(&[0, 32, 64, 128]), "128": "bytes within which chunks of 16 are exchanged [0]";
};

const BUFFER_KEYS: &[Key] = keys! {
    "npy" Form, Path, "\"x.npy\"": "the elements of this array, in the order of the file";
    "bytes" Form, Hex, "\"00ff\"": "these bytes";
    "scratch" Form, Whole { least: 0, most: 16 << 30 }, "256": "so many bytes that nobody has written";
    "tensor_maps" Form, List(&TENSOR_MAP), "[{\"of\": 0, \"dtype\": \"f32\", \"dims\": [64], \"box\": [16]}]":
        "tensor maps in global memory, 128 bytes each";
    "written" With(&["npy"]), Flag, "false": "false: nobody has written the memory [true]";
    "out" Optional, Path, "\"x_out.npy\"": "where it is written after the launch, as unsigned bytes where there is no `npy`";
    "expect" Optional, One(&EXPECTATION), "{\"npy\": \"x.npy\", \"relative\": 1e-3}": "what it has to hold after the launch, or after the last one if it is the file's";
};

const VARIABLE_KEYS: &[Key] = keys! {
    "npy" Form, Path, "\"lut.npy\"": "what it holds before the launch";
    "bytes" Form, Hex, "\"00ff\"": "what it holds before the launch; without both, what the PTX says";
    "out" Optional, Path, "\"lut_out.npy\"": "where it is written after the launch, by the type in the PTX where there is no `npy`";
    "expect" Optional, One(&EXPECTATION), "{\"npy\": \"x.npy\", \"relative\": 1e-3}": "what it has to hold after the launch";
};

const EXPECTATION_KEYS: &[Key] = keys! {
    "npy" Always, Path, "\"x.npy\"": "an array of as many elements, in the same order; of any type of numbers";
    "absolute" Optional, Float { most: f64::MAX }, "1e-6": "how far an element may be from it [0]";
    "relative" Optional, Float { most: f64::MAX }, "1e-3": "the same as a part of the expected element; both are added [0]";
    "dtype" Optional, Word(super::expect::TYPES), "\"f32\"": "the type of the memory's elements [that of its `npy`, else that of the expected array]";
};

const ALLOW_KEYS: &[Key] = keys! {
    "finding" Optional, Word(ALLOWED), "\"exec-race\"": "only findings of this kind";
    "source" Optional, Text, "\"k.cu:12\"": "only at this line of the source; of a race, either access; of inlined code, any line of the chain";
    "ptx_line" Optional, Whole { least: 1, most: U32 }, "40": "only at this line of the PTX; of a race, either access";
    "entry" Optional, Text, "\"scale\"": "only in entries whose name has this part";
    "because" Optional, Text, "\"dropped rows\"": "why it is allowed, for the reader";
};
