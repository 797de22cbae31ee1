//! Rounding to tf32: f32 with 10 bits of fraction, to the nearest. TMA rounds a value halfway to the even one,
//! `cvt.rna` away from zero (seen on an H200; PTX ISA, `cvt`).

/// Bits of f32 that tf32 has not.
const CUT: u32 = 13;

/// Half the distance between 1 and the next tf32: the largest relative error of one rounding.
pub(super) const SHARE: f64 = 1.0 / 2048.0;

/// Half the smallest tf32: the largest error of rounding below the normal numbers.
pub(super) const LEAST: f64 = 1.0 / (1_u128 << 127) as f64 / 1024.0;

/// The nearest tf32, of two that are as near the even one.
pub(crate) fn rounded(x: f32) -> f32 {
    if !x.is_finite() {
        return x;
    }
    let bits = x.to_bits();
    let half = (1 << (CUT - 1)) - 1 + (bits >> CUT & 1);
    f32::from_bits((bits + half) >> CUT << CUT)
}

/// Rounds all; how far from each the other is that would be as near, else 0.
pub(super) fn round_all(all: &mut [f32]) -> Vec<f32> {
    let step = |x: &mut f32| {
        let halfway = x.is_finite() && x.to_bits() << (32 - CUT) == 1 << 31;
        let exact = f64::from(*x);
        *x = rounded(*x);
        // Exact: neighbours differ by a power of 2.
        if halfway && x.is_finite() { (2.0 * (exact - f64::from(*x)).abs()) as f32 } else { 0.0 }
    };
    all.iter_mut().map(step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_halfway_has_another_as_near() {
        let mut all = [1.0, 1.0 + SHARE as f32, -1.0 - 3.0 * SHARE as f32, 1.000_001, f32::from_bits(0x1000), f32::NAN];
        let steps = round_all(&mut all);
        let ulp = 2.0 * SHARE as f32;
        assert_eq!(all[..5], [1.0, 1.0, -1.0 - 2.0 * ulp, 1.0, 0.0]);
        assert_eq!(steps, [0.0, ulp, ulp, 0.0, f32::from_bits(0x2000), 0.0]);
        assert_eq!(LEAST, f64::from(f32::from_bits(0x1000)));
    }
}
