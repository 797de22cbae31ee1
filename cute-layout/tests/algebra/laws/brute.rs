//! Whether a layout represents `A(B(c))`, by looking at every value: for each leaf of B the factor-greedy search, then a
//! check at every coordinate. It shares no idea with the library's decision, which computes no values.

use cute_layout::layout::Layout;

/// The modes `extent:stride` of the only layouts that a leaf's values can have, or `None`.
fn leaf(values: &[i64]) -> Option<Vec<(i64, i64)>> {
    let mut modes = Vec::new();
    let mut rest = values.to_vec();
    loop {
        if rest.len() == 1 {
            return Some(modes);
        }
        let slope = rest[1] - rest[0];
        let run = (1..=rest.len()).take_while(|j| rest[j - 1] - rest[0] == slope * (*j as i64 - 1)).count();
        if !rest.len().is_multiple_of(run) {
            return None;
        }
        let again: Vec<i64> = rest.iter().step_by(run).copied().collect();
        let repeats = rest.iter().enumerate().all(|(i, value)| *value == again[i / run] + slope * (i % run) as i64);
        if !repeats {
            return None;
        }
        modes.push((run as i64, slope));
        rest = again;
    }
}

/// Whether some layout compatible with B has the values of `A(B(c))`.
pub(crate) fn representable(a: &Layout, b: &Layout) -> bool {
    let at = |x: i64| a.at(x).expect("small numbers");
    let extents = b.shape().ints().expect("integers");
    let strides = b.stride().ints().expect("integers");
    let columns: Vec<Vec<i64>> =
        extents.iter().zip(&strides).map(|(s, d)| (0..*s).map(|j| at(j * d)).collect()).collect();
    if columns.iter().any(|values| leaf(values).is_none()) {
        return false;
    }
    (0..b.size()).all(|i| {
        let (mut rest, mut index, mut sum) = (i, 0, 0);
        for ((s, d), values) in extents.iter().zip(&strides).zip(&columns) {
            let digit = rest % s;
            rest /= s;
            index += digit * d;
            sum += values[digit as usize];
        }
        at(index) == sum
    })
}
