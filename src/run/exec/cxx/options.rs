//! What a kernel is compiled for, with what, and how long it may run.

use std::num::NonZero;
use std::path::PathBuf;
use std::time::Duration;

use cutlass_sys::{Finder, HostToolchain, Progress};

use crate::exec::Error;
use crate::settings::named;

named! {
    /// Which checks a kernel is compiled with, the fastest first.
    Mode, "mode":
    /// None but those that cost nothing: the fastest. Blocks are spread over the processors.
    Plain = "plain",
    /// Every access is checked against the elements of the tensors and the shared variables.
    Bounds = "bounds",
    /// As [`Mode::Bounds`] for tensors and shared variables, and every access is checked against those of the other
    /// threads. Takes 56 bytes for each element of an output.
    Races = "races",
}

/// How kernels are compiled and run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The compiler and the headers.
    pub toolchain: HostToolchain,
    /// The cache directory: compiled programs lie in its `host`, what they share in its `runtime`. They are found again by what they
    /// were made of, and removed when they have not been used for 30 days.
    pub cache: PathBuf,
    /// How much processor time each process of a launch may use before it is ended with a verdict; by the clock it may
    /// take twenty times as long, and ten seconds.
    pub time_limit: Duration,
    /// Processes that a launch in [`Mode::Plain`] spreads its blocks over; the other modes use one.
    pub workers: NonZero<usize>,
}

impl Options {
    /// The toolchain of this process's environment, the user's cache directory, a minute of processor time, and every
    /// processor.
    ///
    /// # Errors
    /// A part of the toolchain is missing and cannot be fetched, or there is no cache directory.
    pub fn from_env(progress: &mut dyn Progress) -> Result<Options, Error> {
        let finder = Finder::from_env();
        Ok(Options {
            toolchain: finder.host_toolchain(progress)?,
            cache: finder.env().cache_dir()?,
            time_limit: Duration::from_secs(60),
            workers: std::thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN),
        })
    }
}
