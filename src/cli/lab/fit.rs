//! The cost of a launch and of an epilogue, from times at several K and several tiles per CTA.

/// A problem whose CTAs all compute the same number of tiles, and its time.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Timed {
    /// Tiles that each CTA computes.
    pub(crate) turns: u64,
    /// The extent K.
    pub(crate) k: u64,
    /// Time of one launch.
    pub(crate) seconds: f64,
}

/// `seconds = launch + turns * (k * per_k + epilogue)`.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Fit {
    /// Seconds of a launch before its first product and after its last, L.
    pub(crate) launch_seconds: f64,
    /// Seconds that a tile takes for each of K.
    pub(crate) seconds_per_k: f64,
    /// Seconds of a tile in which its CTA does not multiply, E.
    pub(crate) epilogue_seconds: f64,
    /// The largest difference from a measured time, as a part of it.
    pub(crate) largest_error: f64,
}

impl Fit {
    /// The three numbers whose times differ least from those measured, in the mean of the squares of relative differences.
    ///
    /// With one number of tiles a CTA, launch and epilogue are one constant, and with one K all is: `None` there.
    pub(crate) fn of(timed: &[Timed]) -> Option<Self> {
        let several = |of: fn(&Timed) -> u64| timed.iter().any(|one| of(one) != of(&timed[0]));
        let positive = timed.iter().all(|one| one.seconds > 0.0 && one.seconds.is_finite());
        if timed.len() < 3 || !positive || !several(|one| one.turns) || !several(|one| one.k) {
            return None;
        }
        // Units in which the unknowns are of one size: a launch's microsecond and a thousand of K.
        let row = |one: &Timed| [1e-6, one.turns as f64 * one.k as f64 * 1e-9, one.turns as f64 * 1e-6];
        let mut equations = [[0.0_f64; 4]; 3];
        for one in timed {
            let scaled = row(one).map(|x| x / one.seconds);
            for (i, equation) in equations.iter_mut().enumerate() {
                for (j, x) in scaled.iter().enumerate() {
                    equation[j] += scaled[i] * x;
                }
                equation[3] += scaled[i];
            }
        }
        let solved = solve(equations)?;
        let predicted = |one: &Timed| row(one).iter().zip(&solved).map(|(x, y)| x * y).sum::<f64>();
        let error = |one: &Timed| (predicted(one) / one.seconds - 1.0).abs();
        Some(Self {
            launch_seconds: solved[0] * 1e-6,
            seconds_per_k: solved[1] * 1e-9,
            epilogue_seconds: solved[2] * 1e-6,
            largest_error: timed.iter().map(error).fold(0.0, f64::max),
        })
    }
}

/// Three linear equations, each with its right side behind it; `None` where they do not say it all.
fn solve(mut equations: [[f64; 4]; 3]) -> Option<[f64; 3]> {
    let size = equations.iter().flatten().fold(0.0_f64, |most, x| most.max(x.abs()));
    for column in 0..3 {
        let largest = (column..3).max_by(|x, y| equations[*x][column].abs().total_cmp(&equations[*y][column].abs()))?;
        equations.swap(column, largest);
        let pivot = equations[column];
        if pivot[column].abs() <= size * 1e-13 {
            return None;
        }
        for (row, equation) in equations.iter_mut().enumerate() {
            if row != column {
                let factor = equation[column] / pivot[column];
                equation.iter_mut().zip(pivot).for_each(|(x, y)| *x -= factor * y);
            }
        }
    }
    Some([0, 1, 2].map(|i| equations[i][3] / equations[i][i]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(launch: f64, per_k: f64, epilogue: f64, noise: f64) -> Vec<Timed> {
        let all = [1, 4].into_iter().flat_map(|turns| [512, 1024, 2048, 4096].map(|k| (turns, k)));
        let time = |(i, (turns, k)): (usize, (u64, u64))| {
            let seconds = launch + turns as f64 * (k as f64 * per_k + epilogue);
            // One up, one down.
            Timed { turns, k, seconds: seconds * (1.0 + if i % 2 == 0 { noise } else { -noise }) }
        };
        all.enumerate().map(time).collect()
    }

    #[test]
    fn what_was_put_in_is_found() {
        for (launch, per_k, epilogue) in [(2.75e-6, 4.6e-9, 2.8e-6), (2e-6, 4.4e-9, 0.0), (0.0, 9e-9, 1e-6)] {
            let fit = Fit::of(&times(launch, per_k, epilogue, 0.0)).expect("two of each");
            let near = |found: f64, wanted: f64| (found - wanted).abs() < 1e-12;
            assert!(near(fit.launch_seconds, launch) && near(fit.epilogue_seconds, epilogue), "{fit:?}");
            assert!(near(fit.seconds_per_k * 1e3, per_k * 1e3) && fit.largest_error < 1e-9, "{fit:?}");
        }
    }

    #[test]
    fn noise_is_told() {
        let fit = Fit::of(&times(2.75e-6, 4.6e-9, 2.8e-6, 0.01)).expect("two of each");
        assert!((0.002..0.02).contains(&fit.largest_error), "{fit:?}");
    }

    #[test]
    fn times_that_do_not_tell_them_apart_give_nothing() {
        let all = times(2e-6, 4e-9, 1e-6, 0.0);
        assert_eq!(Fit::of(&all[..4]), None, "one number of tiles");
        assert_eq!(Fit::of(&[all[0], all[4]]), None, "one K");
        assert_eq!(Fit::of(&[Timed { seconds: f64::NAN, ..all[0] }, all[1], all[4], all[5]]), None);
        assert_eq!(Fit::of(&[]), None);
        // Turns times K is the same: three unknowns, but the equations are two.
        let alike = [(1, 4096), (4, 1024), (1, 4096)].map(|(turns, k)| Timed { turns, k, seconds: 1e-5 });
        assert_eq!(Fit::of(&alike), None);
    }
}
