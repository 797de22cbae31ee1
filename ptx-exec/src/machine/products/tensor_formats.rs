//! Small floats of tensor cores, to f32 and back.

/// Widens a small float to f32. Its exponent and fraction are moved to the fields of f32, and a product corrects the exponent, also for
/// subnormals.
#[inline(always)]
fn widened(magnitude: u32, exponent: u32, is_special: bool, negative: u32) -> f32 {
    let number = f32::from_bits(magnitude) * f32::from_bits((127 + exponent) << 23);
    let special = if is_special { 0x7f80_0000 } else { 0 };
    f32::from_bits(number.to_bits() | special | negative << 31)
}

#[inline(always)]
pub(crate) fn half(v: u32) -> f32 {
    widened((v & 0x7fff) << 13, 112, v & 0x7c00 == 0x7c00, v >> 15 & 1)
}

#[inline(always)]
pub(crate) fn e5m2(v: u32) -> f32 {
    widened((v & 0x7f) << 21, 112, v & 0x7c == 0x7c, v >> 7 & 1)
}

/// Its one NaN has fraction bits, so that it is one of f32.
#[inline(always)]
pub(crate) fn e4m3(v: u32) -> f32 {
    widened((v & 0x7f) << 20, 120, v & 0x7f == 0x7f, v >> 7 & 1)
}

#[inline(always)]
pub(crate) fn brain(v: u32) -> f32 {
    f32::from_bits(v << 16)
}

/// The chip reads the upper 19 bits of the register.
#[inline(always)]
pub(crate) fn tf32(v: u32) -> f32 {
    f32::from_bits(v & 0xffff_e000)
}

/// The f16 next to an f32, ties to even.
#[inline(always)]
pub(crate) fn to_half(v: f32) -> u32 {
    let bits = v.to_bits();
    let (magnitude, sign) = (bits & 0x7fff_ffff, bits >> 16 & 0x8000);
    let normal = (magnitude + 0xfff + (magnitude >> 13 & 1)).wrapping_sub(112 << 23) >> 13;
    // A half's last bit is the last one of f32 beside 0.5.
    let small = (f32::from_bits(magnitude) + 0.5).to_bits().wrapping_sub(0x3f00_0000);
    let number = if magnitude < 0x3880_0000 { small } else { normal };
    let number = if magnitude >= 0x477f_f000 { 0x7c00 } else { number };
    if magnitude > 0x7f80_0000 { 0x7fff } else { number | sign }
}
