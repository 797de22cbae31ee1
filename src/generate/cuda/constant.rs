//! Values of Rust as constants of C++.

#[cfg(feature = "emit")]
use crate::atom::{TiledCopy, TiledMma};
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
                // `-9223372036854775808` is no literal of C++.
                let next = self.checked_add(1).filter(|_| *self != 0 && self.checked_sub(1).is_none());
                let value = next.map_or_else(|| self.to_string(), |next| format!("{next} - 1"));
                Ok(format!("constexpr {} {name} = {value};", $cxx))
            }
        }
    )+};
}

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

/// CuTe's `TiledCopy`. Its elements are bits of the atom's width: `Copy_Atom<.., uint_bit_t<16>>`.
#[cfg(feature = "emit")]
impl Constant for TiledCopy {
    fn declaration(&self, name: &str) -> Result<String, String> {
        let (atom, bits) = (self.atom().name(), self.atom().value_bits());
        let (tv, tiler) = (emit::layout_type(self.layout_tv()), emit::tiler_type(self.tiler()));
        Ok(format!("using {name} = TiledCopy<Copy_Atom<{atom},uint_bit_t<{bits}>>,{tv},{tiler}>;"))
    }

    fn is_of_cute(&self) -> bool {
        true
    }
}

/// CuTe's `TiledMMA`.
#[cfg(feature = "emit")]
impl Constant for TiledMma {
    fn declaration(&self, name: &str) -> Result<String, String> {
        let (atom, atoms) = (self.atom().name(), emit::layout_type(self.atom_layout()));
        let permutations: Vec<String> = self.permutations().iter().map(emit::tiler_type).collect();
        Ok(format!("using {name} = TiledMMA<MMA_Atom<{atom}>,{atoms},Tile<{}>>;", permutations.join(",")))
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

#[cfg(all(test, feature = "emit"))]
mod tests {
    use super::*;
    use crate::atom::{CopyAtom, MmaAtom, make_tiled_copy};
    use crate::layout::LayoutError;

    #[test]
    fn constants_are_what_cute_calls_them() -> Result<(), LayoutError> {
        let layout: Layout = "(4,32):(32,1)".parse()?;
        let mma = MmaAtom::named("SM80_16x8x16_F32F16F16F32_TN")?;
        let mma = TiledMma::new(mma, &"(2,2,1):(1,2,4)".parse()?, &"[32,_,16]".parse()?)?;
        let copy = CopyAtom::named("UniversalCopy<uint128_t>", 16)?;
        let copy = make_tiled_copy(&copy, &"(16,8):(8,1)".parse()?, &"(1,8):(0,1)".parse()?)?;
        let swizzle: Swizzle = "Sw<3,3,3>".parse()?;
        let all: [&dyn Constant; 8] =
            [&layout, &mma, &copy, &(swizzle, &layout), &DType::F16, &7_i64, &i64::MIN, &true];
        let told: Vec<String> = all.iter().filter_map(|one| one.declaration("It").ok()).collect();
        expect_test::expect![[r#"
            using It = Layout<Shape<_4,_32>,Stride<_32,_1>>;
            using It = TiledMMA<MMA_Atom<SM80_16x8x16_F32F16F16F32_TN>,Layout<Shape<_2,_2,_1>,Stride<_1,_2,_4>>,Tile<_32,Underscore,_16>>;
            using It = TiledCopy<Copy_Atom<UniversalCopy<uint128_t>,uint_bit_t<16>>,Layout<Shape<Shape<_8,_16>,_8>,Stride<Stride<_128,_1>,_16>>,Shape<_16,_64>>;
            using It = decltype(composition(Swizzle<3,3,3>{}, Layout<Shape<_4,_32>,Stride<_32,_1>>{}));
            using It = __half;
            constexpr long long It = 7;
            constexpr long long It = -9223372036854775807 - 1;
            constexpr bool It = true;"#]].assert_eq(&told.join("\n"));
        Ok(())
    }
}
