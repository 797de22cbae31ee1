//! Memory that is used in the order of one stream.

use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaStream};

use crate::launch::view::{Fence, FenceMut, Guard, in_order, join, sealed};

/// Memory of another library that is used in the order of one stream. A launch on another stream waits for it, and it
/// waits for the launch.
#[derive(Debug)]
pub(crate) struct InStream(pub(crate) Arc<CudaStream>);

impl sealed::Sealed for InStream {}

impl InStream {
    fn order<'s>(&'s self, stream: &'s CudaStream) -> Guard<'s> {
        match self.0.cu_stream() == stream.cu_stream() {
            true => in_order(&self.0, stream),
            false => join(&self.0, stream),
        }
    }
}

impl Fence for InStream {
    fn context(&self) -> &CudaContext {
        self.0.context()
    }

    fn read<'s>(&'s self, stream: &'s CudaStream) -> Guard<'s> {
        self.order(stream)
    }
}

impl FenceMut for InStream {
    fn write<'s>(&'s mut self, stream: &'s CudaStream) -> Guard<'s> {
        self.order(stream)
    }
}
