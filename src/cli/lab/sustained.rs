//! Subjects that are looped for seconds on end, in turns: there a GPU's power decides, and with it the energy of an operation.

use core::fmt;
use std::sync::Arc;
use std::time::Instant;

use cutemplate::launch::cudarc::driver::{CudaEvent, CudaStream, sys};
use cutemplate::launch::{DriverError, LaunchError, Subject};

use super::meter::Reading;

/// The measurements of one subject.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Sustained {
    /// Seconds of each turn that count.
    pub(crate) seconds: f64,
    /// Operations, in 10^12 a second.
    pub(crate) tflop_per_s: f64,
    /// Median clock of the multiprocessors, in MHz, where the driver tells it.
    pub(crate) sm_mhz: Option<u32>,
    /// Power, where the driver counts energy.
    pub(crate) watts: Option<f64>,
    /// Joules for 10^12 operations.
    pub(crate) joules_per_tflop: Option<f64>,
}

impl fmt::Display for Sustained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2} TFLOP/s", self.tflop_per_s)?;
        if let Some(mhz) = self.sm_mhz {
            write!(f, ", {mhz} MHz")?;
        }
        if let (Some(watts), Some(joules)) = (self.watts, self.joules_per_tflop) {
            write!(f, ", {watts:.0} W, {joules:.4} J/TFLOP")?;
        }
        Ok(())
    }
}

/// Turns of each subject.
const TURNS: usize = 2;

/// The start of a turn that does not count: clock and power settle after the subject before. At most half a second.
fn lead(seconds: f64) -> f64 {
    (seconds / 4.0).min(0.5)
}

/// Work that is put into the stream at a time, in seconds; two of those wait in it, so that it is never empty.
const BATCH: f64 = 0.02;

/// Readings of a turn, at least: power has two steps of the counter between them, where each is one.
const READINGS: usize = 4;

/// One turn of one subject.
#[derive(Debug)]
struct Turn {
    /// Seconds of one call.
    call: f64,
    /// What was read, and when.
    readings: Vec<(f64, Reading)>,
}

/// A subject, with the seconds that one call of it takes and the operations that it does.
pub(super) struct Looped<'s, 'l> {
    pub(super) subject: &'s mut Subject<'l>,
    pub(super) seconds: f64,
    pub(super) flop: f64,
}

/// Loops each subject for `seconds`, one after the other, and that again.
pub(super) fn sustain(
    stream: &Arc<CudaStream>,
    seconds: f64,
    subjects: &mut [Looped<'_, '_>],
    read: &mut dyn FnMut() -> Reading,
) -> Result<Vec<Sustained>, LaunchError> {
    let mut turns: Vec<Vec<Turn>> = subjects.iter().map(|_| Vec::new()).collect();
    for _ in 0..TURNS {
        for (subject, turns) in subjects.iter_mut().zip(&mut turns) {
            turns.push(turn(stream, seconds, subject, read)?);
        }
    }
    Ok(subjects.iter().zip(&turns).map(|(subject, turns)| summary(seconds, subject.flop, turns)).collect())
}

fn turn(
    stream: &Arc<CudaStream>,
    seconds: f64,
    looped: &mut Looped<'_, '_>,
    read: &mut dyn FnMut() -> Reading,
) -> Result<Turn, LaunchError> {
    let calls = (BATCH / looped.seconds.max(1e-9)).ceil().clamp(1.0, 4096.0) as usize;
    let mut put = |first: usize| -> Result<CudaEvent, LaunchError> {
        for n in 0..calls {
            looped.subject.launch(first + n)?;
        }
        let timed = Some(sys::CUevent_flags::CU_EVENT_DEFAULT);
        Ok(stream.record_event(timed).map_err(DriverError::of("cuEventRecord"))?)
    };
    let begin = Instant::now();
    let mut readings = Vec::new();
    let mut from: Option<(CudaEvent, usize)> = None;
    let mut waiting = put(0)?;
    for batch in 1.. {
        let next = put(batch * calls)?;
        waiting.synchronize().map_err(DriverError::of("cuEventSynchronize"))?;
        let now = begin.elapsed().as_secs_f64();
        // `waiting` is the end of as many batches as `batch` says.
        match &from {
            None if now >= lead(seconds) => from = Some((waiting, batch)),
            None => {}
            Some((start, first)) => {
                readings.push((now, read()));
                if now >= lead(seconds) + seconds && readings.len() >= READINGS {
                    let ms = start.elapsed_ms(&waiting).map_err(DriverError::of("cuEventElapsedTime"))?;
                    let call = f64::from(ms) * 1e-3 / ((batch - first) * calls) as f64;
                    stream.synchronize().map_err(DriverError::of("cuStreamSynchronize"))?;
                    return Ok(Turn { call, readings });
                }
            }
        }
        waiting = next;
    }
    unreachable!("there are more numbers than batches")
}

fn summary(seconds: f64, flop: f64, turns: &[Turn]) -> Sustained {
    let tflop_per_s = flop / median(turns.iter().map(|turn| turn.call)).unwrap_or(f64::NAN) / 1e12;
    let clocks = turns.iter().flat_map(|turn| turn.readings.iter().filter_map(|(_, r)| r.sm_mhz.map(f64::from)));
    let energies = turns
        .iter()
        .filter_map(|turn| watts(turn.readings.iter().filter_map(|(at, reading)| Some((*at, reading.millijoules?)))));
    let watts = median(energies);
    Sustained {
        seconds,
        tflop_per_s,
        sm_mhz: median(clocks).map(|mhz| mhz.round() as u32),
        watts,
        joules_per_tflop: watts.map(|watts| watts / tflop_per_s),
    }
}

/// The number in the middle, or between the two there; `None` where there are none.
pub(super) fn median(numbers: impl Iterator<Item = f64>) -> Option<f64> {
    let mut all: Vec<f64> = numbers.collect();
    all.sort_by(f64::total_cmp);
    let (low, high) = (all.get(all.len().checked_sub(1)? / 2)?, all.get(all.len() / 2)?);
    Some((low + high) / 2.0)
}

/// Power from readings of a counter of millijoules, with their seconds. The driver counts every so many milliseconds: from its first
/// step to its last, so that what is read between two steps is in no interval.
fn watts(readings: impl Iterator<Item = (f64, u64)>) -> Option<f64> {
    let mut steps = Vec::new();
    let mut last = None;
    for (at, energy) in readings {
        if last.is_some_and(|last| last != energy) {
            steps.push((at, energy));
        }
        last = Some(energy);
    }
    let (&(from, low), &(to, high)) = (steps.first()?, steps.last()?);
    (to > from && high > low).then(|| (high - low) as f64 * 1e-3 / (to - from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_lie_in_the_middle() {
        assert_eq!(median([3.0, 1.0, 2.0].into_iter()), Some(2.0));
        assert_eq!(median([4.0, 1.0].into_iter()), Some(2.5));
        assert_eq!(median([].into_iter()), None);
    }

    #[test]
    fn power_is_read_between_steps_of_the_counter() {
        // 700 W, counted every 100 ms, read every 30.
        let counter = |at: f64| ((at / 0.1).floor() * 70_000.0) as u64;
        let reads = (0..100).map(|i| f64::from(i) * 0.03).map(|at| (at, counter(at)));
        let watts = watts(reads).expect("it counts");
        assert!((watts - 700.0).abs() < 700.0 * 0.015, "{watts}");
    }

    #[test]
    fn a_counter_that_stands_or_falls_says_nothing() {
        assert_eq!(watts([(0.0, 5), (1.0, 5), (2.0, 5)].into_iter()), None);
        assert_eq!(watts([(0.0, 5), (1.0, 6)].into_iter()), None);
        assert_eq!(watts([(0.0, 5), (1.0, 6), (2.0, 4)].into_iter()), None);
        assert_eq!(watts([].into_iter()), None);
    }

    #[test]
    fn turns_are_summed_up() {
        let reading = |sm_mhz, millijoules| Reading { sm_mhz, millijoules };
        let turn = |call, readings| Turn { call, readings };
        let energy = |i: u32| (f64::from(i), reading(Some(1500 + i), Some(u64::from(i) * 600_000)));
        let one = turn(1e-3, (0..5).map(energy).collect());
        let other = turn(3e-3, vec![(0.0, reading(None, None))]);
        let both = summary(3.0, 1e12, &[one, other]);
        assert_eq!((both.tflop_per_s, both.sm_mhz, both.watts), (500.0, Some(1502), Some(600.0)));
        assert_eq!(both.joules_per_tflop, Some(1.2));
        assert_eq!(both.to_string(), "500.00 TFLOP/s, 1502 MHz, 600 W, 1.2000 J/TFLOP");
        let none = summary(3.0, 1e12, &[turn(1e-3, Vec::new())]);
        assert_eq!(none.to_string(), "1000.00 TFLOP/s");
    }
}
