//! Random operands as text.

use cute_layout::layout::{IntTuple, Layout};

use crate::random::{Random, extents, strides};

/// A nesting of so many leaves, at most three levels deep.
pub(crate) fn profile(random: &mut Random, leaves: usize, level: usize) -> String {
    if leaves == 1 && (level > 0 || !random.one_in(12)) {
        return "#".to_owned();
    }
    let mut modes = Vec::new();
    let mut left = leaves;
    while left > 0 {
        let most = if level < 2 { left.min(3) } else { 1 };
        let take = if modes.is_empty() && left == leaves && leaves > 1 {
            random.below(most.min(leaves - 1)) + 1
        } else {
            random.below(most) + 1
        };
        modes.push(if take > 1 && random.one_in(2) && level < 2 {
            profile(random, take, level + 1)
        } else {
            vec!["#"; take].join(",")
        });
        left -= take;
    }
    format!("({})", modes.join(","))
}

pub(crate) fn fill(profile: &str, leaves: &[i64]) -> String {
    let mut leaves = leaves.iter();
    profile
        .chars()
        .map(|c| if c == '#' { leaves.next().map_or(String::new(), i64::to_string) } else { c.to_string() })
        .collect()
}

/// A layout of up to `most` leaves, as text.
pub(crate) fn layout(random: &mut Random, most: usize) -> String {
    let leaves = 1 + random.below(most);
    let form = profile(random, leaves, 0);
    let s = extents(random, leaves);
    let mut d = strides(random, &s, false);
    for (stride, extent) in d.iter_mut().zip(&s) {
        if random.one_in(8) || (*extent == 1 && random.one_in(2)) {
            *stride = 0;
        }
    }
    format!("{}:{}", fill(&form, &s), fill(&form, &d))
}

/// A compact layout, as text: what products and inverses are mostly used with.
pub(crate) fn compact(random: &mut Random, most: usize) -> String {
    let leaves = 1 + random.below(most);
    let form = profile(random, leaves, 0);
    let s = extents(random, leaves);
    let mut order: Vec<usize> = (0..leaves).collect();
    random.shuffle(&mut order);
    let mut d = vec![0; leaves];
    let mut current = 1;
    for i in order {
        d[i] = current;
        current *= s[i];
    }
    format!("{}:{}", fill(&form, &s), fill(&form, &d))
}

pub(crate) fn either(random: &mut Random, most: usize) -> String {
    if random.one_in(2) { layout(random, most) } else { compact(random, most) }
}

pub(crate) fn shape(random: &mut Random, most: usize) -> String {
    let leaves = 1 + random.below(most);
    let form = profile(random, leaves, 0);
    fill(&form, &extents(random, leaves))
}

pub(crate) fn parsed(text: &str) -> Layout {
    text.parse().expect("the generator writes layouts")
}

/// A tiler for a layout: a layout, a shape, or an entry for each of some modes.
pub(crate) fn tiler(random: &mut Random, of: &str, keep: bool) -> String {
    let rank = parsed(of).rank();
    match random.below(4) {
        0 => {
            let modes: Vec<String> =
                (0..1 + random.below(rank)).map(|_| random.pick(&["1", "2", "2", "4", "3"]).to_string()).collect();
            format!("({})", modes.join(","))
        }
        1 => {
            let entry = |random: &mut Random| match random.below(if keep { 4 } else { 3 }) {
                0 => random.pick(&["2", "4", "1"]).to_string(),
                1 => format!("{}:{}", random.pick(&[2, 4]), random.pick(&[1, 1, 2])),
                2 => compact(random, 1),
                _ => "_".to_owned(),
            };
            let entries: Vec<String> = (0..1 + random.below(rank)).map(|_| entry(random)).collect();
            format!("[{}]", entries.join(","))
        }
        _ => either(random, 2),
    }
}

/// A coordinate that fits: integers for modes, perhaps tuples, `_` where asked.
pub(crate) fn coord(random: &mut Random, shape: &IntTuple, underscores: bool) -> String {
    if underscores && random.one_in(2) {
        return "_".to_owned();
    }
    if shape.is_leaf() || random.one_in(3) {
        return random.below(shape.size().expect("small").max(2) as usize).to_string();
    }
    let modes: Vec<String> = shape.modes().map(|mode| coord(random, &mode, underscores)).collect();
    format!("({})", modes.join(","))
}

/// A coordinate with at least one `_` and at least one integer, for a layout of rank 2 or more.
pub(crate) fn mixed(random: &mut Random, layout: &str) -> String {
    let shape = parsed(layout).shape().clone();
    let mut modes: Vec<String> = shape.modes().map(|mode| coord(random, &mode, true)).collect();
    let (keep, fix) = (random.below(modes.len()), random.below(modes.len()));
    modes[keep] = "_".to_owned();
    let fix = if fix == keep { (keep + 1) % modes.len() } else { fix };
    modes[fix] = "1".to_owned();
    format!("({})", modes.join(","))
}

/// A layout of at least two modes.
pub(crate) fn wide(random: &mut Random) -> String {
    loop {
        let layout = layout(random, 4);
        if parsed(&layout).rank() > 1 {
            return layout;
        }
    }
}

/// A swizzle whose bits lie low, so that small layouts reach them.
pub(crate) fn swizzle(random: &mut Random) -> String {
    let bits = random.between(1, 3);
    let shift = bits + random.between(0, 1);
    let shift = if random.one_in(6) { -shift } else { shift };
    format!("Sw<{bits},{},{shift}>", random.between(0, 2))
}

/// A swizzled layout whose extents are powers of two, with or without an offset.
pub(crate) fn swizzled(random: &mut Random) -> String {
    let (m, n) = (*random.pick(&[4, 8, 16]), *random.pick(&[8, 16]));
    let offset = if random.one_in(4) { random.below(8) } else { 0 };
    let inner = if random.one_in(2) { format!("({m},{n}):({n},1)") } else { format!("({m},{n}):(1,{m})") };
    format!("{} o {offset} o {inner}", swizzle(random))
}
