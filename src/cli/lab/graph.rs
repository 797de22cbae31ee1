//! Launches that are recorded once and replayed as a CUDA graph, so that timings do not include the host's work.

use std::sync::Arc;

use cutemplate::launch::cudarc::driver::{CudaFunction, CudaGraph, CudaStream, LaunchConfig, result, sys};
use cutemplate::launch::cudarc::nvrtc::Ptx;
use cutemplate::launch::{DriverError, LaunchError};

/// Some launches as one graph.
pub(crate) struct Replay {
    graph: CudaGraph,
    /// Launches in it.
    pub(crate) launches: u32,
}

impl Replay {
    /// Records `launches` calls of `launch` on the stream. None of them runs until the graph is replayed.
    pub(crate) fn record(
        stream: &Arc<CudaStream>,
        launches: u32,
        mut launch: impl FnMut(usize) -> Result<(), LaunchError>,
    ) -> Result<Self, LaunchError> {
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        stream.begin_capture(mode).map_err(DriverError::of("cuStreamBeginCapture"))?;
        let recorded = (0..launches as usize).try_for_each(&mut launch);
        // The capture has to end, whatever was recorded.
        let graph = stream.end_capture(sys::CUgraphInstantiate_flags(0)).map_err(DriverError::of("cuStreamEndCapture"));
        recorded?;
        match graph? {
            Some(graph) => Ok(Self { graph, launches }),
            None => {
                let nothing = result::DriverError(sys::CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
                Err(DriverError::of("cuStreamEndCapture")(nothing).into())
            }
        }
    }

    /// Puts the graph into its stream.
    pub(crate) fn replay(&self) -> Result<(), LaunchError> {
        self.graph.launch().map_err(|e| DriverError::of("cuGraphLaunch")(e).into())
    }
}

/// A kernel that does nothing: what every launch costs.
pub(crate) struct Empty {
    function: CudaFunction,
    config: LaunchConfig,
}

impl Empty {
    /// The driver compiles it, so that no toolkit is needed.
    const PTX: &'static str = ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry empty()\n{\n  ret;\n}\n";

    /// With the grid and the block of another kernel.
    pub(crate) fn new(stream: &CudaStream, grid: [u32; 3], block: [u32; 3]) -> Result<Self, DriverError> {
        let context = stream.context();
        let module = context.load_module(Ptx::from_src(Self::PTX)).map_err(DriverError::of("cuModuleLoadData"))?;
        let function = module.load_function("empty").map_err(DriverError::of("cuModuleGetFunction"))?;
        let triple = |[x, y, z]: [u32; 3]| (x, y, z);
        let config = LaunchConfig { grid_dim: triple(grid), block_dim: triple(block), shared_mem_bytes: 0 };
        Ok(Self { function, config })
    }

    /// Puts it into the stream.
    pub(crate) fn launch(&self, stream: &Arc<CudaStream>) -> Result<(), LaunchError> {
        // SAFETY: the kernel has no parameters and touches no memory.
        unsafe { stream.launch_builder(&self.function).launch(self.config) }
            .map(drop)
            .map_err(|e| DriverError::of("cuLaunchKernel")(e).into())
    }
}
