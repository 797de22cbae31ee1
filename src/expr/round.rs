//! Exact rounding to each element type.

use crate::dtype::DType;

/// The value of the bits.
pub fn value(dtype: DType, bits: u64) -> f64 {
    let small = |exponent_bits: u32, fraction_bits: u32| {
        let bias = (1 << (exponent_bits - 1)) - 1;
        let exponent = (bits >> fraction_bits) as i32 & ((1 << exponent_bits) - 1);
        let fraction = (bits & ((1 << fraction_bits) - 1)) as f64 / f64::from(1 << fraction_bits);
        let magnitude = match exponent {
            0 => fraction * f64::powi(2.0, 1 - bias),
            _ => (1.0 + fraction) * f64::powi(2.0, exponent - bias),
        };
        if bits >> (exponent_bits + fraction_bits) & 1 == 1 { -magnitude } else { magnitude }
    };
    match dtype {
        DType::E4m3 if bits & 0x7f == 0x7f => f64::NAN,
        DType::E4m3 => small(4, 3),
        DType::E5m2 if bits & 0x7f == 0x7c => small(5, 2).signum() * f64::INFINITY,
        DType::E5m2 if bits & 0x7f > 0x7c => f64::NAN,
        DType::E5m2 => small(5, 2),
        DType::Bool => f64::from(u8::from(bits & 0xff != 0)),
        _ => f64::from_bits(bits),
    }
}

/// The bits of the nearest value.
pub fn bits(dtype: DType, x: f64) -> u64 {
    match dtype {
        DType::Bool => u64::from(x != 0.0),
        _ if x.is_nan() => 0x7f,
        _ => {
            let largest = if dtype == DType::E4m3 { 0x7e } else { 0x7b };
            let magnitude = x.abs();
            let above = (0..=largest).find(|b| value(dtype, *b) >= magnitude).unwrap_or(largest);
            let below = above.saturating_sub(1);
            let (up, down) = (value(dtype, above) - magnitude, magnitude - value(dtype, below));
            let nearest = match up.partial_cmp(&down) {
                Some(core::cmp::Ordering::Less) => above,
                Some(core::cmp::Ordering::Equal) if above & 1 == 0 => above,
                _ if value(dtype, above) <= magnitude => above,
                _ => below,
            };
            nearest | u64::from(x.is_sign_negative()) << 7
        }
    }
}
