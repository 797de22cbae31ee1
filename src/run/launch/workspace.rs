//! Device memory for the workspaces of launches.

use core::ptr;
use std::sync::Arc;

use cudarc::driver::{CudaContext, result, sys};

use crate::launch::error::DriverError;
use crate::units::Bytes;

/// The source of a kernel's workspaces: a memory pool of its own. An allocation is ordered in its stream, so that
/// launches on two streams never share one. In a captured stream it becomes a node of the graph, which owns it (CUDA
/// Driver API, "Stream Ordered Memory Allocator"). The pool keeps freed memory for the next launch, however often the
/// device is waited for in between. The device's default pool would give it back to the system each time.
#[derive(Debug)]
pub(crate) struct Pool {
    context: Arc<CudaContext>,
    handle: sys::CUmemoryPool,
}

// SAFETY: a CUmemoryPool is a handle that every thread may use (CUDA Driver API, "Stream Ordered Memory Allocator").
unsafe impl Send for Pool {}
// SAFETY: as above.
unsafe impl Sync for Pool {}

impl Pool {
    pub(crate) fn new(context: &Arc<CudaContext>) -> Result<Self, DriverError> {
        context.bind_to_thread().map_err(DriverError::of("an earlier asynchronous call"))?;
        let props = sys::CUmemPoolProps {
            allocType: sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
            handleTypes: sys::CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_NONE,
            location: sys::CUmemLocation {
                type_: sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
                id: context.cu_device(),
            },
            win32SecurityAttributes: ptr::null_mut(),
            maxSize: 0,
            usage: 0,
            reserved: [0; 54],
        };
        // SAFETY: the properties are those of memory on the context's own device, and live for the call.
        let handle = unsafe { result::mem_pool::create(&props) }.map_err(DriverError::of("cuMemPoolCreate"))?;
        let pool = Self { context: context.clone(), handle };
        let mut threshold = u64::MAX;
        let attribute = sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
        // SAFETY: the pool is alive, and the attribute is a cuuint64_t.
        unsafe { result::mem_pool::set_attribute(pool.handle, attribute, (&raw mut threshold).cast()) }
            .map_err(DriverError::of("cuMemPoolSetAttribute"))?;
        Ok(pool)
    }

    /// Runs `launch` with the address of so much memory, which later work of the stream finds freed.
    pub(crate) fn lend(
        &self,
        stream: sys::CUstream,
        bytes: Bytes,
        launch: impl FnOnce(u64) -> Result<(), DriverError>,
    ) -> Result<(), DriverError> {
        let size = usize::try_from(bytes.0).unwrap_or(usize::MAX);
        // SAFETY: pool and stream are alive, as the caller of the launch says.
        let address = unsafe { result::mem_pool::alloc_async(self.handle, size, stream) }
            .map_err(DriverError::of("cuMemAllocFromPoolAsync"))?;
        let launched = launch(address);
        // SAFETY: the memory was allocated in this stream just now; whatever uses it was put into the stream before.
        let freed = unsafe { result::free_async(address, stream) };
        launched.and(freed.map_err(DriverError::of("cuMemFreeAsync")))
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.context.record_err(self.context.bind_to_thread());
        // SAFETY: the pool was created by `new` and is destroyed once. Memory of launches that still run is released when
        // it is freed in their streams.
        self.context.record_err(unsafe { result::mem_pool::destroy(self.handle) });
    }
}
