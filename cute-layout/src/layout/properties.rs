//! Properties of a layout: sorted, injective, bijective, compact, tractable, admissible for complement.

use super::coalesce::{coalesced, filter};
use super::core::Layout;
use super::error::{Class, LayoutError, mul};

/// The most values that are looked at where strides alone do not decide.
pub const MOST_COMPARED: i64 = 1 << 16;

/// The modes in the order of their strides (ties by extent), flat. It is another function with the same image.
///
/// *Law.* The same modes with `d_0 <= d_1 <= ..`, so the same values, each as often.
///
/// *Source.* J. Shah, *A note on the algebra of CuTe layouts*, sorted layouts. CuTe has no function for it.
///
/// # Errors
/// A stride is not an integer.
///
/// ```
/// use cute_layout::layout::{Layout, sorted};
/// assert_eq!(sorted(&"(2,2):(3,1)".parse()?)?.to_string(), "(2,2):(1,3)");
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn sorted(layout: &Layout) -> Result<Layout, LayoutError> {
    layout.require_ints("sorted")?;
    let mut modes: Vec<_> = layout.pairs().collect();
    modes.sort_by_key(|(s, d)| (d.value, s.value));
    Layout::from_flat(&modes)
}

/// Whether a layout is admissible for complement in a space of `size`, by the definition of the layout algebra (J. Shah,
/// *A note on the algebra of CuTe layouts*): sorted by stride, each extent times its stride divides the next stride, and
/// the last one divides `size`.
///
/// Where it is, `(layout, complement(layout, size))` is a bijection onto `0 .. size`.
///
/// *Law.* `(layout, complement(layout, size))` is then a bijection onto `0 .. size`.
///
/// # Errors
/// The reason why it is not: the mode and the pair that does not divide.
///
/// ```
/// use cute_layout::layout::{Layout, is_admissible_for_complement};
/// assert!(is_admissible_for_complement(&"(2,4):(1,2)".parse()?, 16).is_ok());
/// let reason = is_admissible_for_complement(&"(2,4):(1,2)".parse()?, 12).unwrap_err();
/// assert!(reason.to_string().contains("12 mod 8 = 4"));
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn is_admissible_for_complement(layout: &Layout, size: i64) -> Result<(), LayoutError> {
    let refuse = |found: String, required: &str| {
        LayoutError::on("is_admissible_for_complement", Class::NonInjective, &[("layout", layout), ("size", &size)])
            .found(found)
            .required(required)
    };
    layout.require_ints("is_admissible_for_complement")?;
    if size < 1 {
        return Err(refuse(format!("size {size}"), "a size of at least 1"));
    }
    let modes = sorted(&filter(layout)?)?;
    let mut covered = 1i64;
    for (s, d) in modes.pairs().filter(|(s, _)| s.value > 1) {
        if d.value < 1 || d.value % covered != 0 {
            let rest = d.value.checked_rem(covered).unwrap_or(0);
            return Err(refuse(
                format!("mode {}:{} after {covered} ({} mod {covered} = {rest})", s.value, d.value, d.value),
                "each stride a multiple of the extent times the stride before it",
            ));
        }
        covered = mul(s.value, d.value)?;
    }
    if size % covered != 0 {
        return Err(refuse(format!("{size} mod {covered} = {}", size % covered), "a size that the last mode divides"));
    }
    Ok(())
}

/// Whether no two coordinates have the same value.
///
/// Decided from the strides where the modes do not interleave; otherwise by comparing values, at most
/// [`MOST_COMPARED`].
///
/// *Law.* `layout(i) != layout(j)` wherever `i != j`, both below the size.
///
/// *Source.* C. Cecka, *CuTe Layout Representation and Algebra*, arXiv 2603.02298. CuTe has no function for it;
/// `complement` in `cute/layout.hpp` asserts it of its argument.
///
/// # Errors
/// A stride is not an integer, or the strides do not decide and there are too many values.
///
/// ```
/// use cute_layout::layout::{Layout, is_injective};
/// assert!(is_injective(&"(8,2):(12,8)".parse()?)?);
/// assert!(!is_injective(&"(2,4):(2,2)".parse()?)?);
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn is_injective(layout: &Layout) -> Result<bool, LayoutError> {
    layout.require_ints("is_injective")?;
    let mut modes: Vec<(i64, i64)> = Vec::new();
    for (s, d) in coalesced(layout)? {
        if d.value == 0 {
            return Ok(false);
        }
        modes.push((super::error::abs(d.value)?, s.value));
    }
    modes.sort_unstable();
    if modes.windows(2).any(|pair| pair[0].0 == pair[1].0) {
        return Ok(false);
    }
    let mut reach = 0i128;
    let mut apart = true;
    for (d, s) in &modes {
        apart = apart && i128::from(*d) > reach;
        reach += i128::from(*d) * i128::from(*s - 1);
    }
    if apart {
        return Ok(true);
    }
    if reach + 1 < i128::from(layout.size()) {
        return Ok(false);
    }
    if layout.size() > MOST_COMPARED {
        return Err(LayoutError::on("is_injective", Class::Undecided, &[("layout", layout)])
            .found(format!("{} values of modes that interleave", layout.size()))
            .required(format!("at most {MOST_COMPARED} values to compare")));
    }
    let mut values = (0..layout.size()).map(|i| layout.at(i)).collect::<Result<Vec<i64>, _>>()?;
    values.sort_unstable();
    Ok(values.windows(2).all(|pair| pair[0] != pair[1]))
}

/// Whether the values are exactly `0 .. size`.
///
/// *Law.* `{layout(i) : i < size} == {0, .., size - 1}`.
///
/// *Source.* C. Cecka, *CuTe Layout Representation and Algebra*, arXiv 2603.02298. CuTe has no function for it.
///
/// # Errors
/// As for [`is_injective`].
///
/// ```
/// use cute_layout::layout::{Layout, is_bijective};
/// assert!(is_bijective(&"(4,(2,2)):(4,(1,2))".parse()?)?);
/// assert!(!is_bijective(&"(4,2):(1,8)".parse()?)?);
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn is_bijective(layout: &Layout) -> Result<bool, LayoutError> {
    layout.require_ints("is_bijective")?;
    if layout.pairs().any(|(s, d)| d.value < 0 && s.value > 1) {
        return Ok(false);
    }
    Ok(layout.cosize()? == layout.size() && is_injective(layout)?)
}

/// Whether a layout without its stride-0 modes is a bijection: nothing is left out between its values.
///
/// *Law.* `is_bijective(filter(layout))`.
///
/// *Source.* C. Cecka, *CuTe Layout Representation and Algebra*, arXiv 2603.02298. CuTe has no function for it;
/// `compact_order` in `cute/stride.hpp` makes such layouts.
///
/// # Errors
/// As for [`is_injective`].
///
/// ```
/// use cute_layout::layout::{Layout, is_compact};
/// assert!(is_compact(&"(4,2,8):(0,1,2)".parse()?)?);
/// assert!(!is_compact(&"(4,8):(1,5)".parse()?)?);
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn is_compact(layout: &Layout) -> Result<bool, LayoutError> {
    is_bijective(&filter(layout)?)
}

/// Whether a layout is tractable (Carlisle, Shah, Stern, VanKoughnett, *Categorical Foundations for CuTe Layouts*): sorted
/// by stride, each non-zero stride times its extent divides the next. On such layouts every operation is exact.
///
/// *Law.* In the order of strides, `s_i * d_i` divides `d_(i+1)` for every mode with `d_i != 0`.
///
/// *Source.* B. Carlisle, J. Shah, R. Stern, P. VanKoughnett, arXiv 2601.05972. CuTe has no function for it.
///
/// # Errors
/// A stride is not an integer, or a product does not fit in 64 bits.
///
/// ```
/// use cute_layout::layout::{Layout, is_tractable};
/// assert!(is_tractable(&"(4,8):(8,1)".parse()?)?);
/// assert!(!is_tractable(&"(4,8):(1,5)".parse()?)?);
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn is_tractable(layout: &Layout) -> Result<bool, LayoutError> {
    let mut covered = 1i64;
    for (s, d) in sorted(layout)?.pairs().filter(|(s, d)| d.value != 0 && s.value > 1) {
        if d.value < 0 || d.value % covered != 0 {
            return Ok(false);
        }
        covered = mul(s.value, d.value)?;
    }
    Ok(true)
}
