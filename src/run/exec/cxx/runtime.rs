//! The executor's own C++: the shim that a kernel is compiled with, and the runtime that it is linked with.

/// A file of the executor, as it is laid beside a kernel's text.
pub(super) struct CxxFile {
    pub(super) name: &'static str,
    pub(super) text: &'static str,
}

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        &[$(CxxFile { name: $name, text: include_str!(concat!("runtime/", $name)) },)*]
    };
}

/// What a kernel's text is compiled with. The headers in [`OVERLAY`] take the place of CUTLASS's of the same name, which are PTX, or
/// do what no C++ defines.
pub(super) const SHIM: &[CxxFile] =
    files!["shim.h", "device_math.h", "overlay/cute/arch/copy_sm80.hpp", "overlay/cutlass/float8.h"];

/// The directory whose headers are found ahead of CUTLASS's.
pub(super) const OVERLAY: &str = "overlay";

/// What runs it: `runner.cpp` includes the others; `head.cpp` and `tail.cpp` enclose the kernel's static shared memory, and
/// `dynamic.cpp` has the dynamic.
pub(super) const RUNTIME: &[CxxFile] = files![
    "runner.cpp",
    "head.cpp",
    "tail.cpp",
    "dynamic.cpp",
    "async.h",
    "block.h",
    "fiber.h",
    "hooks.h",
    "memory.h",
    "protocol.h",
    "races.h",
    "state.h",
    "sync.h",
    "tsan_atomics.h",
];
