//! Timing work on a stream by CUDA events, several subjects interleaved.
//!
//! Clocks drift as a chip warms up, so subjects that are to be compared take turns: A B C A B C, never A A A B B B. Short
//! kernels are launched in batches between two events, and the time of one is the batch's divided by its size.

use std::sync::Arc;
use std::time::Duration;

use cudarc::driver::{CudaEvent, CudaStream, sys};

use crate::launch::error::{DriverError, LaunchError};

/// How subjects are timed.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Protocol {
    /// Launches of each subject before anything counts.
    pub warmup: u32,
    /// Timings of each subject.
    pub timings: u32,
    /// The shortest time between two events, in seconds: shorter work is launched in batches of this length. The
    /// resolution of event times is about 0.5 us (CUDA Driver API, `cuEventElapsedTime`).
    pub batch_seconds: f64,
    /// Launches in a batch, at most.
    pub max_batch: u32,
    /// Seconds without work ahead of each timing: a GPU that slowed down under heavy work recovers its clock, and the
    /// timing is a burst.
    pub rest_seconds: f64,
}

impl Default for Protocol {
    /// 10 launches to warm up, 50 timings of at least 200 us.
    fn default() -> Self {
        Self { warmup: 10, timings: 50, batch_seconds: 200e-6, max_batch: 256, rest_seconds: 0.0 }
    }
}

/// Something to time: `launch(n)` puts its n-th run into the stream.
pub struct Subject<'a> {
    name: &'static str,
    launch: Box<dyn FnMut(usize) -> Result<(), LaunchError> + 'a>,
}

impl core::fmt::Debug for Subject<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Subject").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<'a> Subject<'a> {
    /// A subject of that name. `launch` gets the number of the run, from 0, to rotate its buffers by.
    pub fn new(name: &'static str, launch: impl FnMut(usize) -> Result<(), LaunchError> + 'a) -> Self {
        Self { name, launch: Box::new(launch) }
    }

    /// Puts its n-th run into the stream.
    ///
    /// # Errors
    /// Where the launch is refused.
    pub fn launch(&mut self, n: usize) -> Result<(), LaunchError> {
        (self.launch)(n)
    }
}

/// The timings of one subject.
#[derive(Clone, Debug, PartialEq)]
pub struct Samples {
    name: &'static str,
    batch: u32,
    /// Seconds of one launch, sorted.
    seconds: Vec<f64>,
}

impl Samples {
    fn new(name: &'static str, batch: u32, mut seconds: Vec<f64>) -> Self {
        seconds.sort_by(f64::total_cmp);
        Self { name, batch, seconds }
    }

    /// The same for subjects that are `launches` launches each.
    pub fn of_each(mut self, launches: u32) -> Self {
        self.batch *= launches;
        self.seconds.iter_mut().for_each(|s| *s /= f64::from(launches));
        self
    }

    /// The subject.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Launches between two events.
    pub fn batch(&self) -> u32 {
        self.batch
    }

    /// Timings.
    pub fn len(&self) -> usize {
        self.seconds.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.seconds.is_empty()
    }

    /// The q-quantile in seconds, `0.0..=1.0`, between neighbours where it falls between them; NaN where there are none.
    pub fn quantile(&self, q: f64) -> f64 {
        let at = q.clamp(0.0, 1.0) * self.seconds.len().saturating_sub(1) as f64;
        let get = |i: f64| self.seconds.get(i as usize).copied().unwrap_or(f64::NAN);
        let (low, high) = (get(at.floor()), get(at.ceil()));
        low + (high - low) * at.fract()
    }

    /// The median, in seconds.
    pub fn median(&self) -> f64 {
        self.quantile(0.5)
    }
}

/// Times the subjects in turn, on one stream.
///
/// # Errors
/// Where a launch is refused, or the driver reports an error of a kernel.
pub fn interleave(
    stream: &Arc<CudaStream>,
    protocol: &Protocol,
    subjects: &mut [Subject<'_>],
) -> Result<Vec<Samples>, LaunchError> {
    let mut runs = vec![0_usize; subjects.len()];
    let mut run = |subject: &mut Subject<'_>, which: usize| {
        let n = runs[which];
        runs[which] += 1;
        (subject.launch)(n)
    };
    let mut batches = Vec::new();
    for (which, subject) in subjects.iter_mut().enumerate() {
        for _ in 0..protocol.warmup.max(1) {
            run(subject, which)?;
        }
        let (start, end) = (event(stream)?, {
            run(subject, which)?;
            event(stream)?
        });
        batches.push(batch(protocol, elapsed(&start, &end)?));
    }
    let mut events: Vec<Vec<(CudaEvent, CudaEvent)>> = subjects.iter().map(|_| Vec::new()).collect();
    for _ in 0..protocol.timings {
        for (which, subject) in subjects.iter_mut().enumerate() {
            if protocol.rest_seconds > 0.0 {
                stream.synchronize().map_err(DriverError::of("cuStreamSynchronize"))?;
                std::thread::sleep(Duration::try_from_secs_f64(protocol.rest_seconds).unwrap_or(Duration::MAX));
            }
            let start = event(stream)?;
            for _ in 0..batches[which] {
                run(subject, which)?;
            }
            events[which].push((start, event(stream)?));
        }
    }
    stream.synchronize().map_err(DriverError::of("cuStreamSynchronize"))?;
    let samples = subjects.iter().zip(&events).zip(&batches).map(|((subject, events), batch)| {
        let seconds = events.iter().map(|(start, end)| Ok(elapsed(start, end)? / f64::from(*batch)));
        Ok(Samples::new(subject.name, *batch, seconds.collect::<Result<_, DriverError>>()?))
    });
    samples.collect::<Result<_, DriverError>>().map_err(LaunchError::from)
}

fn event(stream: &CudaStream) -> Result<CudaEvent, DriverError> {
    stream.record_event(Some(sys::CUevent_flags::CU_EVENT_DEFAULT)).map_err(DriverError::of("cuEventRecord"))
}

fn elapsed(start: &CudaEvent, end: &CudaEvent) -> Result<f64, DriverError> {
    start.elapsed_ms(end).map(|ms| f64::from(ms) * 1e-3).map_err(DriverError::of("cuEventElapsedTime"))
}

/// Launches for one timing, from the time of a single one.
fn batch(protocol: &Protocol, seconds: f64) -> u32 {
    let needed = (protocol.batch_seconds / seconds.max(1e-9)).ceil();
    (needed as u32).clamp(1, protocol.max_batch.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_lie_between_neighbours() {
        let samples = Samples::new("a", 1, vec![4.0, 1.0, 3.0, 2.0]);
        assert_eq!([0.0, 0.5, 1.0].map(|q| samples.quantile(q)), [1.0, 2.5, 4.0]);
        assert_eq!(Samples::new("a", 1, vec![7.0]).median(), 7.0);
        assert!(Samples::new("a", 1, vec![]).median().is_nan());
    }

    #[test]
    fn short_work_is_batched() {
        let protocol = Protocol::default();
        assert_eq!([1.0, 150e-6, 3e-6, 0.0].map(|s| batch(&protocol, s)), [1, 2, 67, 256]);
    }
}
