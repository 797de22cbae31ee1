//! The types of elements that tensor maps have.

use crate::Ty;

/// A type of elements (PTX ISA, "tensormap.replace", `.elemtype`), by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Element {
    U8,
    U16,
    U32,
    S32,
    U64,
    S64,
    F16,
    F32,
    F32Ftz,
    F64,
    Bf16,
    Tf32,
    Tf32Ftz,
}

impl Element {
    pub(super) const ALL: [(Element, &'static str, u64); 13] = [
        (Element::U8, "u8", 1),
        (Element::U16, "u16", 2),
        (Element::U32, "u32", 4),
        (Element::S32, "i32", 4),
        (Element::U64, "u64", 8),
        (Element::S64, "i64", 8),
        (Element::F16, "f16", 2),
        (Element::F32, "f32", 4),
        (Element::F32Ftz, "f32.ftz", 4),
        (Element::F64, "f64", 8),
        (Element::Bf16, "bf16", 2),
        (Element::Tf32, "tf32", 4),
        (Element::Tf32Ftz, "tf32.ftz", 4),
    ];

    pub(super) fn name(self) -> &'static str {
        Element::ALL[self as usize].1
    }

    /// Bytes of one.
    pub(super) fn bytes(self) -> u64 {
        Element::ALL[self as usize].2
    }

    /// The bits of a NaN, of floats.
    pub(super) fn nan(self) -> Option<u64> {
        Some(match self {
            Element::F16 | Element::Bf16 => 0x7fff,
            Element::F32 | Element::F32Ftz | Element::Tf32 | Element::Tf32Ftz => 0x7fff_ffff,
            Element::F64 => u64::MAX >> 1,
            _ => return None,
        })
    }

    /// That of a type; `None` where `cuTensorMapEncodeTiled` has none, by its own name or as bits.
    pub(super) fn of(ty: Ty) -> Option<Element> {
        Some(match ty {
            Ty::B8 | Ty::U8 | Ty::S8 | Ty::E4m3 | Ty::E5m2 => Element::U8,
            Ty::B16 | Ty::U16 | Ty::S16 => Element::U16,
            Ty::B32 | Ty::U32 => Element::U32,
            Ty::S32 => Element::S32,
            Ty::B64 | Ty::U64 => Element::U64,
            Ty::S64 => Element::S64,
            Ty::F16 => Element::F16,
            Ty::F32 => Element::F32,
            Ty::F64 => Element::F64,
            Ty::Bf16 => Element::Bf16,
            Ty::Tf32 => Element::Tf32,
            _ => return None,
        })
    }
}
