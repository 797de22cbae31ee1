//! Random problems of a product, and what ratios of many problems come to.

use cutemplate::verify::SplitMix64;

/// The largest extent.
const MOST: f64 = 20_000.0;

/// How random extents are spread from 1 to 20,000.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Spread {
    /// Each is as likely as any other, so that few are small.
    #[default]
    Even,
    /// Each magnitude is: half of them lie below 141.
    Log,
}

/// M, N and K from 1 to 20,000; every other problem has multiples of 8. The same from the same seed.
pub(crate) fn random_problems(count: u32, seed: u64, spread: Spread) -> Vec<[i64; 3]> {
    let random = SplitMix64(seed);
    let extent = |problem: u32, mode: u64| {
        // 53 bits, the precision of an f64.
        let uniform = (random.at(u64::from(problem) * 3 + mode) >> 11) as f64 / (1_u64 << 53) as f64;
        // From 1 to below 20,001, whose whole part is each extent.
        let extent = match spread {
            Spread::Even => 1.0 + uniform * MOST,
            Spread::Log => libm::exp(uniform * libm::log(MOST + 1.0)),
        };
        let extent = extent.clamp(1.0, MOST) as i64;
        if problem.is_multiple_of(2) { (extent / 8).max(1) * 8 } else { extent }
    };
    (0..count).map(|problem| [0, 1, 2].map(|mode| extent(problem, mode))).collect()
}

/// What many ratios come to.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Ratios {
    /// How many.
    pub(crate) count: usize,
    /// Their geometric mean.
    pub(crate) geometric_mean: f64,
    /// The 5th percentile, between neighbours where it falls between them.
    pub percentile_5: f64,
    /// The least.
    pub(crate) least: f64,
}

impl Ratios {
    /// Of ratios; `None` if there are none, or one is not a positive number.
    pub(crate) fn of(ratios: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut all: Vec<f64> = ratios.into_iter().collect();
        if all.is_empty() || all.iter().any(|ratio| !ratio.is_finite() || *ratio <= 0.0) {
            return None;
        }
        all.sort_by(f64::total_cmp);
        let at = 0.05 * (all.len() - 1) as f64;
        let (low, high) = (all[at.floor() as usize], all[at.ceil() as usize]);
        let mean = all.iter().map(|ratio| libm::log(*ratio)).sum::<f64>() / all.len() as f64;
        Some(Self {
            count: all.len(),
            geometric_mean: libm::exp(mean),
            percentile_5: low + (high - low) * at.fract(),
            least: all[0],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_are_spread_over_all_magnitudes() {
        let problems = random_problems(2000, 7, Spread::Log);
        assert_eq!(problems, random_problems(2000, 7, Spread::Log));
        assert_ne!(problems[..10], random_problems(10, 8, Spread::Log)[..]);
        // A uniform logarithm: log(20001) / log(2) = 14.3 octaves, equally many problems in each.
        let odd: Vec<i64> = problems.iter().skip(1).step_by(2).flatten().copied().collect();
        for octave in 4..14 {
            let found = odd.iter().filter(|extent| extent.ilog2() == octave).count() as f64;
            let expected = odd.len() as f64 / 14.2877;
            assert!((found - expected).abs() < 5.0 * expected.sqrt(), "2^{octave}: {found} of {expected}");
        }
        assert!(odd.iter().any(|extent| extent % 8 != 0) && odd.contains(&1));
    }

    #[test]
    fn problems_are_spread_evenly() {
        let problems = random_problems(2000, 7, Spread::Even);
        let all = problems.len() as f64 * 3.0;
        for tenth in 0..10 {
            let of = |extent: &&i64| (**extent - 1) / 2000 == tenth;
            let found = problems.iter().flatten().filter(of).count() as f64;
            assert!((found - all / 10.0).abs() < 5.0 * (all / 10.0).sqrt(), "{tenth}: {found} of {all}");
        }
    }

    #[test]
    fn percentiles_lie_between_neighbours() {
        let ratios = Ratios::of((0..=40).rev().map(|i| 1.0 + f64::from(i) / 40.0)).expect("41");
        assert_eq!((ratios.count, ratios.least, ratios.percentile_5), (41, 1.0, 1.05));
        assert_eq!(Ratios::of([1.0, 3.0]).map(|r| r.percentile_5), Some(1.1));
        assert_eq!([Ratios::of([]), Ratios::of([1.0, 0.0]), Ratios::of([f64::NAN])], [None; 3]);
    }
}
