//! Clock and energy of a GPU, from NVIDIA's management library (NVML), which comes with the driver and is loaded when it is first asked
//! for. It is only read.

use cutemplate::launch::Gpu;
use nvml_wrapper::Nvml;
use nvml_wrapper::enum_wrappers::device::Clock;
use nvml_wrapper::error::NvmlError;

/// The driver's readings at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Reading {
    /// Clock of the multiprocessors, in MHz.
    pub(super) sm_mhz: Option<u32>,
    /// Energy since the driver was loaded.
    pub(super) millijoules: Option<u64>,
}

/// The GPU that kernels run on, as NVML knows it.
pub(super) struct Meter {
    nvml: Nvml,
    address: String,
}

impl Meter {
    /// The meter of a GPU, or why nothing can be read.
    pub(super) fn of(gpu: &Gpu) -> Result<Self, String> {
        let nvml = Nvml::init().map_err(|e| match e {
            NvmlError::LibloadingError(_) => {
                "the driver's library NVML (libnvidia-ml.so.1, nvml.dll) was not found".to_owned()
            }
            e => format!("NVML: {e}"),
        })?;
        // NVML knows nothing of CUDA_VISIBLE_DEVICES: devices are the same by their address on the bus.
        let meter = Self { nvml, address: gpu.bus_address().map_err(|e| e.to_string())? };
        meter.nvml.device_by_pci_bus_id(&*meter.address).map_err(|e| format!("NVML, device {}: {e}", meter.address))?;
        Ok(meter)
    }

    /// Clock and energy now, without values that the device does not report.
    pub(super) fn read(&self) -> Reading {
        let Ok(device) = self.nvml.device_by_pci_bus_id(&*self.address) else { return Reading::default() };
        Reading { sm_mhz: device.clock_info(Clock::SM).ok(), millijoules: device.total_energy_consumption().ok() }
    }
}
