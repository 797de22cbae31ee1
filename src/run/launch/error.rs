//! What can go wrong between a fatbin and a finished launch.

use cudarc::driver::result;

use crate::arch::Targets;
use crate::artifact::ArtifactError;
use crate::diagnostic::{BindError, debug_as_display};
use crate::digest::Digest;
use crate::fatbin::FatbinError;

/// The CUDA driver refused a call.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{call}: {name} ({text})")]
pub struct DriverError {
    /// The attempted call.
    pub call: &'static str,
    /// The name of its error, `CUDA_ERROR_OUT_OF_MEMORY`.
    pub name: String,
    /// The driver's text.
    pub text: String,
}

debug_as_display!(DriverError);

impl DriverError {
    /// The error of a driver's call, with the driver's own words. There is a driver, since it gave the error.
    pub fn of(call: &'static str) -> impl FnOnce(result::DriverError) -> Self {
        move |error| {
            let text = |found: Result<&core::ffi::CStr, _>| found.map(|s| s.to_string_lossy().into_owned());
            Self {
                call,
                name: text(error.error_name()).unwrap_or_else(|_| format!("error {}", error.0 as u32)),
                text: text(error.error_string()).unwrap_or_else(|_| "unknown to this driver".into()),
            }
        }
    }
}

/// A kernel was not loaded.
#[derive(thiserror::Error)]
pub enum LoadError {
    /// It belongs to another recipe or version.
    #[error(transparent)]
    Artifact(#[from] ArtifactError),
    /// It has no machine code: it was built without nvcc, as was asked for.
    #[error(
        "kernel `{kernel}` is a stub: there is nothing that a GPU could run\n  \
         because:  {why}\n  \
         help:     build it again without CUTEMPLATE_STUB, where nvcc is found or CUTEMPLATE_FETCH=1 fetches it"
    )]
    Stub {
        /// The kernel.
        kernel: String,
        /// Why.
        why: String,
    },
    /// Its fatbin is not the one that the build wrote down.
    #[error(
        "kernel `{kernel}`: its fatbin is not the one that was compiled\n  \
         found:    sha256 {found}\n  \
         required: sha256 {required}, which the build script wrote down\n  \
         because:  the GPU runs whatever is loaded\n  \
         help:     build it again"
    )]
    Changed {
        /// The kernel.
        kernel: String,
        /// The sha256 of the fatbin that was found.
        found: Digest,
        /// The sha256 of the fatbin that was compiled.
        required: String,
    },
    /// Its fatbin was made of another text than the plan's.
    #[error(
        "kernel `{kernel}`: its fatbin was not made of this plan's text\n  \
         because:  views are checked against the plan, and the machine code of another would touch other memory\n  \
         help:     load it with the plan that was compiled"
    )]
    Foreign {
        /// The kernel.
        kernel: String,
    },
    /// Its fatbin is damaged.
    #[error("kernel `{kernel}`: {error}\n  help: build it again")]
    Fatbin {
        /// The kernel.
        kernel: String,
        /// The error.
        #[source]
        error: FatbinError,
    },
    /// Its fatbin has no code for this GPU.
    #[error(
        "kernel `{kernel}` has no code for this GPU\n  \
         found:    code for {targets}\n  \
         required: code that runs on compute capability {}.{} ({gpu})\n  \
         because:  SASS runs on its own major version only, and PTX on its own version and later ones\n  \
         help:     {help}", capability.0, capability.1
    )]
    NoCode {
        /// The kernel.
        kernel: String,
        /// The targets of the fatbin.
        targets: Targets,
        /// The name of the device.
        gpu: String,
        /// Its compute capability.
        capability: (u32, u32),
        /// How.
        help: String,
    },
    /// The entry takes other parameters than the plan's.
    #[error(
        "kernel `{kernel}`: found {} in the fatbin, required {}\n  \
         help: the fatbin is not of this plan; build it again",
        found.map_or("no parameter".to_owned(), |bytes| format!("a parameter of {bytes} bytes")),
        if *required == 0 { "none behind the last".to_owned() } else { format!("one of {required} bytes") }
    )]
    Params {
        /// The kernel.
        kernel: String,
        /// The size of the entry's parameter, in bytes, if it has one.
        found: Option<usize>,
        /// The size of the plan's parameter; 0 where it has no more.
        required: usize,
    },
    /// The compiled kernel cannot run as many threads as the plan has.
    #[error(
        "kernel `{kernel}`: found room for {found} threads in a block with {registers} registers each, required {required}\n  \
         help: a smaller thread layout, or fewer values in each thread"
    )]
    Threads {
        /// The kernel.
        kernel: String,
        /// The driver's limit for this kernel.
        found: u32,
        /// Registers of one thread.
        registers: u32,
        /// The plan's threads.
        required: u32,
    },
    /// The driver refused.
    #[error("kernel `{kernel}`: {error}")]
    Driver {
        /// The kernel.
        kernel: String,
        /// Its message.
        #[source]
        error: DriverError,
    },
}

debug_as_display!(LoadError);

/// A kernel was not launched.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum LaunchError {
    /// A view does not fit the plan.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The kernel is CUDA C++ of one's own, and nobody vouches for it.
    #[error(
        "kernel `{kernel}` is launched by a safe function, and nobody vouches for it\n  \
         because: it is CUDA C++ of one's own: no check of its declaration shows that it keeps to its tensors\n  \
         help: launch it by `unsafe fn launch_unvouched`, or let build.rs say `unsafe {{ entry.vouched() }}`"
    )]
    Unvouched {
        /// The kernel.
        kernel: String,
    },
    /// The stream is captured into a graph, by a safe function.
    #[error(
        "kernel `{kernel}` is launched by a safe function, and the stream is captured into a graph\n  \
         because: the graph may be launched after the memory of the views was freed\n  \
         help: capture `unsafe fn launch_unvouched`, and keep the memory for as long as the graph"
    )]
    Captured {
        /// The kernel.
        kernel: String,
    },
    /// The kernel was loaded for another device.
    #[error(
        "found a stream of device {stream}, required one of device {kernel}\n  \
         because: a kernel is loaded into one context\n  \
         help: load the kernel once for each device"
    )]
    Context {
        /// The device of the stream.
        stream: usize,
        /// The device of the kernel.
        kernel: usize,
    },
    /// The memory of a view belongs to another context.
    #[error(
        "{tensor} lies in memory of another context than the launch\n  \
         because: its events can only be recorded on streams of its own context\n  \
         help: copy it to device {device} first"
    )]
    Memory {
        /// The tensor.
        tensor: &'static str,
        /// The device of the launch.
        device: usize,
    },
    /// A second view of an output is launched without the first.
    #[error(
        "{tensor} is a second view of an output that this launch has no view of\n  \
         because: the first one orders the launch against other work on their memory\n  \
         help: launch all views that the arguments gave together"
    )]
    Alone {
        /// The tensor.
        tensor: &'static str,
    },
    /// The driver refused.
    #[error(transparent)]
    Driver(#[from] DriverError),
}

debug_as_display!(LaunchError);
