//! Values of Rust as constants of C++.

use crate::dtype::DType;
#[cfg(feature = "emit")]
use crate::emit;
#[cfg(feature = "emit")]
use crate::layout::{Layout, Swizzle};

/// A value that a text of one's own gets as a constant of C++: see [`Cuda::constant`](super::Cuda::constant).
pub trait Constant {
    /// The declaration of that name: a `using` or a `constexpr`.
    ///
    /// # Errors
    /// C++ has no such constant: why.
    fn declaration(&self, name: &str) -> Result<String, String>;

    /// Whether it needs CuTe.
    fn is_of_cute(&self) -> bool {
        false
    }
}

macro_rules! numbers {
    ($($ty:ty => $cxx:literal),+) => {$(
        impl Constant for $ty {
            fn declaration(&self, name: &str) -> Result<String, String> {
                Ok(format!("constexpr {} {name} = {self};", $cxx))
            }
        }
    )+};
}

// `INT_MIN` has no literal of its own in C++, so that of i32 and i64 are not offered below -(2^31 - 1): nvcc warns.
numbers!(i32 => "int", u32 => "unsigned", i64 => "long long", u64 => "unsigned long long", usize => "unsigned long long");

impl Constant for bool {
    fn declaration(&self, name: &str) -> Result<String, String> {
        Ok(format!("constexpr bool {name} = {self};"))
    }
}

/// An element type, as CUDA's own headers call it: `__half`, `__nv_bfloat16`.
impl Constant for DType {
    fn declaration(&self, name: &str) -> Result<String, String> {
        let ty = match self {
            DType::F16 => "__half",
            DType::Bf16 => "__nv_bfloat16",
            DType::E4m3 => "__nv_fp8_e4m3",
            DType::E5m2 => "__nv_fp8_e5m2",
            DType::I32 => "int",
            DType::I16 => "short",
            DType::I8 => "signed char",
            DType::U8 | DType::Bool => "unsigned char",
            other => other.cxx(),
        };
        Ok(format!("using {name} = {ty};"))
    }
}

#[cfg(feature = "emit")]
impl Constant for Layout {
    fn declaration(&self, name: &str) -> Result<String, String> {
        Ok(format!("using {name} = {};", emit::layout_type(self)))
    }

    fn is_of_cute(&self) -> bool {
        true
    }
}

#[cfg(feature = "emit")]
impl Constant for Swizzle {
    fn declaration(&self, name: &str) -> Result<String, String> {
        Ok(format!("using {name} = Swizzle<{},{},{}>;", self.bits(), self.base(), self.shift()))
    }

    fn is_of_cute(&self) -> bool {
        true
    }
}

/// A layout behind a swizzle, as `composition` makes it.
#[cfg(feature = "emit")]
impl Constant for (Swizzle, &Layout) {
    fn declaration(&self, name: &str) -> Result<String, String> {
        Ok(format!("using {name} = {};", emit::swizzled_type(self.0, self.1)))
    }

    fn is_of_cute(&self) -> bool {
        true
    }
}
