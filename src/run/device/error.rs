//! What can go wrong on a device, whichever it is.

use crate::diagnostic::debug_as_display;
use crate::exec;
use crate::launch::{DriverError, LaunchError, LoadError};

/// A kernel was not loaded, not launched, or did something wrong; or memory was refused.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// The GPU did not load the kernel.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The GPU did not launch the kernel.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// The driver refused memory or a copy.
    #[error(transparent)]
    Driver(#[from] DriverError),
    /// The executor did not load the kernel, did not launch it, or found a fault.
    #[error(transparent)]
    Executor(#[from] exec::Error),
    /// A view lies in memory of the other kind.
    #[error(
        "argument {argument}: its memory belongs to another device\n  \
         found:    memory of {found}\n  \
         required: memory of {required}, which the kernel was loaded on\n  \
         because:  neither can read the memory of the other\n  \
         help:     `put` or `zeros` of the device that the kernel was loaded on make its buffers"
    )]
    Elsewhere {
        /// Which operand, from 0 on.
        argument: usize,
        /// The kind of its memory.
        found: &'static str,
        /// The kind that the kernel takes.
        required: &'static str,
    },
}

impl DeviceError {
    pub(super) fn elsewhere((argument, found, required): (usize, &'static str, &'static str)) -> Self {
        Self::Elsewhere { argument, found, required }
    }
}

debug_as_display!(DeviceError);
