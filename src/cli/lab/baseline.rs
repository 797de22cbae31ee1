//! Baselines of products: cuBLAS for f32, and cuBLASLt at its best on tensor cores.

use std::cell::RefCell;
use std::sync::Arc;

use cutemplate::launch::cudarc::driver::CudaStream;
use cutemplate::launch::{DriverError, LaunchError, Protocol, Samples, Subject, interleave};
use cutemplate::plan::Plan;
use cutemplate::view::ViewRef;

use super::BenchError;
use super::cublas::Cublas;
use super::epilogue::Epilogue;
use super::graph::Replay;
use super::lt::{Algorithm, CublasLt, Matmul};

/// The library that has a plan's product.
pub(super) enum Library {
    /// Its f32 is not rounded to tf32, and it chooses by itself.
    Cublas(Cublas),
    /// It reports its choices, and times f32 rounded to tf32 if the kernels round it.
    Lt(CublasLt),
}

impl Library {
    pub(super) fn of(plan: &Plan, stream: &Arc<CudaStream>) -> Result<Self, BenchError> {
        match plan.product() {
            Some(product) if product.is_on_tensor_cores() => Ok(Self::Lt(CublasLt::new(stream, product)?)),
            _ => Ok(Self::Cublas(Cublas::new(stream)?)),
        }
    }

    /// D = A @ B.
    pub(super) fn product(&self, a: &ViewRef, b: &ViewRef, d: &ViewRef) -> Result<(), BenchError> {
        match self {
            Self::Cublas(cublas) => cublas.product(a, b, d),
            Self::Lt(lt) => lt.product(a, b, d),
        }
    }
}

/// How launches are put into the stream.
pub(super) struct Timer<'a> {
    pub(super) stream: &'a Arc<CudaStream>,
    /// Launches of a graph that is replayed; `None` where each launch is the host's.
    pub(super) graph: Option<u32>,
    pub(super) protocol: &'a Protocol,
}

impl Timer<'_> {
    /// Its launches, as a subject of the timing.
    pub(super) fn subject<'s>(
        &self,
        name: &'static str,
        mut launch: impl FnMut(usize) -> Result<(), LaunchError> + 's,
    ) -> Result<Subject<'s>, LaunchError> {
        let Some(launches) = self.graph else { return Ok(Subject::new(name, launch)) };
        // The first launch loads code and workspaces, which cannot be recorded.
        launch(0)?;
        self.stream.synchronize().map_err(DriverError::of("cuStreamSynchronize"))?;
        let graph = Replay::record(self.stream, launches, launch)?;
        Ok(Subject::new(name, move |_| graph.replay()))
    }

    /// Launches that are one call of a subject.
    pub(super) fn launches(&self) -> u32 {
        self.graph.unwrap_or(1)
    }

    /// Times subjects in turn; the samples are of single launches.
    pub(super) fn time(&self, protocol: &Protocol, subjects: &mut [Subject<'_>]) -> Result<Vec<Samples>, LaunchError> {
        let samples = interleave(self.stream, protocol, subjects)?;
        Ok(samples.into_iter().map(|s| s.of_each(self.launches())).collect())
    }
}

/// A library's product of the operands that kernels are timed on, on several sets of buffers.
pub(super) struct Baseline<'a> {
    library: &'a Library,
    raw: &'a [Vec<ViewRef>],
    /// For each set, where the library wants more than the operands' addresses.
    sets: Vec<Matmul>,
    algorithms: Vec<Algorithm>,
    /// The function that it computes.
    pub(super) computes: String,
    /// An error of a closure that can only fail as a launch does.
    failed: RefCell<Option<BenchError>>,
}

/// Which algorithm is the fastest.
pub(super) struct Chosen {
    pub(super) algorithm: usize,
    pub(super) tried: usize,
    pub(super) first_over_fastest: f64,
}

impl<'a> Baseline<'a> {
    pub(super) fn new(
        library: &'a Library,
        plan: &Plan,
        raw: &'a [Vec<ViewRef>],
        scalars: &[f64],
    ) -> Result<Self, BenchError> {
        let mut own = Self {
            library,
            raw,
            sets: Vec::new(),
            algorithms: Vec::new(),
            computes: Epilogue::PLAIN.to_string(),
            failed: RefCell::new(None),
        };
        let Library::Lt(lt) = library else { return Ok(own) };
        let why = match Epilogue::of(plan) {
            Ok(epilogue) => {
                own.prepare(lt, &epilogue, scalars)?;
                own.computes = epilogue.to_string();
                "its heuristics propose nothing for the kernels' epilogue"
            }
            Err(why) => why,
        };
        if own.algorithms.is_empty() {
            own.prepare(lt, &Epilogue::PLAIN, &[])?;
            own.computes = format!("{}, since {why}", Epilogue::PLAIN);
        }
        if own.algorithms.is_empty() {
            return Err(BenchError::Cublas("cublasLt: its heuristics propose nothing for these operands".into()));
        }
        Ok(own)
    }

    fn prepare(&mut self, lt: &CublasLt, epilogue: &Epilogue, scalars: &[f64]) -> Result<(), BenchError> {
        self.sets =
            self.raw.iter().map(|raw| Matmul::new(raw, epilogue, scalars, lt.compute)).collect::<Result<_, _>>()?;
        let Some(first) = self.sets.first() else { return Err(BenchError::Nothing) };
        self.algorithms = lt.algorithms(first, &self.sets.iter().collect::<Vec<_>>())?;
        Ok(())
    }

    /// Its name and version.
    pub(super) fn name(&self) -> String {
        match self.library {
            Library::Cublas(_) => "cuBLAS".into(),
            Library::Lt(_) => format!("cuBLASLt {}", CublasLt::version()),
        }
    }

    fn try_launch(&self, algorithm: usize, n: usize) -> Result<(), BenchError> {
        match self.library {
            Library::Lt(lt) => lt.launch(&self.sets[n % self.sets.len()], &self.algorithms[algorithm]),
            Library::Cublas(cublas) => {
                let raw = &self.raw[n % self.raw.len()];
                let [a, b, .., d] = &raw[..] else { return Err(BenchError::Nothing) };
                cublas.product(a, b, d)
            }
        }
    }

    /// Launches its product of the n-th set in the stream. [`Baseline::check`] reports errors.
    pub(super) fn launch(&self, algorithm: usize, n: usize) -> Result<(), LaunchError> {
        if let Err(error) = self.try_launch(algorithm, n) {
            self.failed.borrow_mut().get_or_insert(error);
        }
        Ok(())
    }

    /// Whether no launch failed so far.
    pub(super) fn check(&self) -> Result<(), BenchError> {
        self.failed.borrow_mut().take().map_or(Ok(()), Err)
    }

    /// Times all algorithms in turn, then the four fastest and the heuristics' first for longer.
    pub(super) fn choose(&self, timer: &Timer<'_>, turn: &dyn Fn() -> usize) -> Result<Chosen, BenchError> {
        // An algorithm that fails at once is not proposed for these operands on this device.
        let works = |algorithm: &usize| self.try_launch(*algorithm, 0).is_ok();
        let mut left: Vec<usize> = (0..self.algorithms.len()).filter(works).collect();
        timer.stream.synchronize().map_err(DriverError::of("cuStreamSynchronize"))?;
        let (tried, Some(&first)) = (left.len(), left.first()) else {
            return match self.library {
                Library::Cublas(_) => Ok(Chosen { algorithm: 0, tried: 1, first_over_fastest: 1.0 }),
                Library::Lt(_) => Err(BenchError::Cublas("cublasLt: no algorithm of its heuristics works".into())),
            };
        };
        let mut first_over_fastest = 1.0;
        for (warmup, timings, keep) in [(1, 3, 4), (2, 9, 1)] {
            if left.len() == 1 {
                break;
            }
            if !left.contains(&first) {
                left.push(first);
            }
            // Bursts where the timings are, with as much rest as brings most of the clock back; the first choice is coarse.
            let rest_seconds = if keep == 1 { timer.protocol.rest_seconds.min(0.1) } else { 0.0 };
            let protocol = Protocol { warmup, timings, rest_seconds, ..*timer.protocol };
            let subject = |algorithm: &usize| {
                let algorithm = *algorithm;
                timer.subject("algorithm", move |_| self.launch(algorithm, turn()))
            };
            let mut subjects = left.iter().map(subject).collect::<Result<Vec<_>, _>>()?;
            let samples = timer.time(&protocol, &mut subjects)?;
            self.check()?;
            let mut timed: Vec<(f64, usize)> = samples.iter().map(Samples::median).zip(left).collect();
            let of_first = timed.iter().find(|(_, algorithm)| *algorithm == first).map_or(f64::NAN, |(s, _)| *s);
            timed.sort_by(|x, y| x.0.total_cmp(&y.0));
            first_over_fastest = of_first / timed[0].0;
            left = timed.into_iter().take(keep).map(|(_, algorithm)| algorithm).collect();
        }
        Ok(Chosen { algorithm: left[0], tried, first_over_fastest })
    }
}
