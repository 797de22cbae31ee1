//! DLPack: tensors that NumPy, PyTorch, JAX, CuPy and many others lend and take, through the crate [`dlpark`].
//!
//! ```
//! use cutemplate::interop::dlpack::{HostImport, export};
//! use cutemplate::view::ViewLayout;
//!
//! // Somebody lends a matrix by columns ..
//! let lent = export(vec![1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0], ViewLayout::strided(&[3, 2], &[1, 3]).unwrap())?;
//! // SAFETY: what it says of its memory is so, and nobody writes it meanwhile.
//! let tensor = unsafe { HostImport::new(lent) }?;
//! let view = tensor.view::<f32>()?;
//! assert_eq!(view.raw().layout.to_string(), "(3,2):(1,3)");
//! // .. and has it back when `tensor` is dropped.
//! # Ok::<(), cutemplate::interop::Refused>(())
//! ```
//!
//! | element type | DLPack | | element type | DLPack |
//! |---|---|---|---|---|
//! | `f64`, `f32`, `f16` | float | | `i32`, `i16`, `i8` | int |
//! | `bf16` | bfloat | | `u8` | uint |
//! | `e4m3`, `e5m2` | float8_e4m3fn, float8_e5m2 | | `bool` | bool, of 8 bits |

use core::ffi::c_void;
use core::fmt;
use std::sync::Arc;

use ::dlpark::ffi::{DLDataType, DLDevice, DLDeviceType, DLManagedTensorVersioned};
use ::dlpark::metadata::Dynamic;
use ::dlpark::versioned::Dlpack;
use ::dlpark::{DlpackFlags, Managed, ManagedTensorBase, OpaqueContext};

use super::{Refused, layout, list};
use crate::dtype::{DType, Element};
use crate::units::Elements;
use crate::verify::{Tensor, with_scalar};
use crate::view::{Access, AnyView, HostMemory, View, ViewLayout, ViewMut};

#[cfg(feature = "cuda")]
mod device;

#[cfg(feature = "cuda")]
pub use device::{DeviceImport, export_device};

/// The crate whose types these functions take and give, in the version that they come from.
pub use ::dlpark;

/// Both names of each element type.
const TYPES: &[(DType, DLDataType)] = &[
    (DType::F64, DLDataType::F64),
    (DType::F32, DLDataType::F32),
    (DType::F16, DLDataType::F16),
    (DType::Bf16, DLDataType::BF16),
    (DType::E4m3, DLDataType::F8E4M3FN),
    (DType::E5m2, DLDataType::F8E5M2),
    (DType::I32, DLDataType::I32),
    (DType::I16, DLDataType::I16),
    (DType::I8, DLDataType::I8),
    (DType::U8, DLDataType::U8),
    (DType::Bool, DLDataType::BOOL),
];

/// DLPack's name of an element type.
pub fn data_type(dtype: DType) -> DLDataType {
    // The table has each of them (tested below).
    TYPES.iter().find(|(d, _)| *d == dtype).map_or(DLDataType::U8, |(_, data_type)| *data_type)
}

/// The element type that DLPack calls so.
///
/// # Errors
/// Kernels have none such.
pub fn dtype(of: DLDataType) -> Result<DType, Refused> {
    TYPES.iter().find(|(_, data_type)| *data_type == of).map(|(dtype, _)| *dtype).ok_or_else(|| Refused {
        what: "kernels have no such element type",
        found: name(of),
        required: format!("one of {}", TYPES.iter().map(|(_, d)| name(*d)).collect::<Vec<_>>().join(", ")),
        because: "the bits of an element mean what the kernel was generated for",
        help: "convert the tensor first",
    })
}

fn name(of: DLDataType) -> String {
    const NAMES: [&str; 18] = [
        "int",
        "uint",
        "float",
        "handle",
        "bfloat",
        "complex",
        "bool",
        "float8_e3m4",
        "float8_e4m3",
        "float8_e4m3b11fnuz",
        "float8_e4m3fn",
        "float8_e4m3fnuz",
        "float8_e5m2",
        "float8_e5m2fnuz",
        "float8_e8m0fnu",
        "float6_e2m3fn",
        "float6_e3m2fn",
        "float4_e2m1fn",
    ];
    let DLDataType { code, bits, lanes } = of;
    let name = match NAMES.get(usize::from(code.0)) {
        // Where the name says how many bits there are.
        Some(name) if name.starts_with("float") && name.len() > "float".len() => (*name).to_owned(),
        Some(&"bool") if bits == 8 => "bool".into(),
        Some(name) => format!("{name}{bits}"),
        None => format!("code {} of {bits} bits", code.0),
    };
    if lanes == 1 { name } else { format!("{name} x {lanes}") }
}

/// A tensor's description of itself.
#[derive(Clone, Copy, Debug)]
struct Described {
    dtype: DType,
    /// The address of its first element.
    ptr: u64,
    layout: ViewLayout,
    device: DLDevice,
    is_read_only: bool,
}

impl Described {
    fn of<M: ManagedTensorBase>(managed: &Managed<M>) -> Result<Self, Refused> {
        let malformed = |found: String| Refused {
            what: "the tensor's description is malformed",
            found,
            required: "extents, strides and an address as DLPack 1.3 has them".into(),
            because: "nothing else says where the elements are",
            help: "it is a mistake of whoever lent the tensor",
        };
        let tensor = managed.validate().map_err(|e| malformed(e.to_string()))?;
        let strides = tensor.strides_or_compact().map_err(|e| malformed(e.to_string()))?;
        let layout = layout(tensor.shape(), &strides)?;
        let (data, offset) = (tensor.data_ptr() as u64, tensor.byte_offset());
        let past = || malformed(format!("a byte_offset of {offset}, past the last address"));
        let ptr = data.checked_add(offset).ok_or_else(past)?;
        if layout.size() != Some(0) && data == 0 {
            return Err(malformed(format!("no address for ({}) elements", list(tensor.shape()))));
        }
        let is_read_only = managed.flags().contains(DlpackFlags::READ_ONLY);
        // Without elements the address is meaningless.
        let ptr = if layout.size() == Some(0) { 0 } else { ptr };
        Ok(Self { dtype: dtype(tensor.dtype())?, ptr, layout, device: tensor.device(), is_read_only })
    }

    /// DLPack does not say how much memory there is, so it is as much as the elements take.
    fn available(&self) -> Elements {
        Elements(self.layout.span().unwrap_or(0))
    }

    fn holds<T: Element>(&self) -> Result<(), Refused> {
        if T::DTYPE == self.dtype {
            return Ok(());
        }
        Err(Refused {
            what: "the tensor holds another element type",
            found: self.dtype.to_string(),
            required: T::DTYPE.to_string(),
            because: "a view's type is that of the bits in memory",
            help: "convert the tensor first, or ask for the type that it has",
        })
    }

    fn may_be_written(&self) -> Result<(), Refused> {
        if !self.is_read_only {
            return Ok(());
        }
        Err(Refused {
            what: "the tensor is only lent for reading",
            found: "the flag READ_ONLY".into(),
            required: "a tensor without it".into(),
            because: "others see the same memory, and rely on its contents",
            help: "pass it as an input, or give the kernel memory of its own to write",
        })
    }

    fn lies_on(&self, known: &[(DLDeviceType, &str)]) -> Result<(), Refused> {
        if known.iter().any(|(device, _)| *device == self.device.device_type) {
            return Ok(());
        }
        Err(Refused {
            what: "the tensor lies on another device",
            found: device_name(self.device),
            required: format!("memory of {}", known.iter().map(|(_, name)| *name).collect::<Vec<_>>().join(" or ")),
            because: "whatever runs the kernel reads the elements where they are",
            help: "copy the tensor there first",
        })
    }
}

fn device_name(of: DLDevice) -> String {
    let DLDevice { device_type, device_id } = of;
    let name = match device_type {
        DLDeviceType::CPU => "the CPU",
        DLDeviceType::CUDA => return format!("CUDA device {device_id}"),
        DLDeviceType::CUDAHOST => "pinned memory of CUDA",
        DLDeviceType::CUDAMANAGED => "managed memory of CUDA",
        DLDeviceType::METAL => "Metal",
        DLDeviceType::ROCM => "ROCm",
        _ => return format!("device type {} of DLPack, number {device_id}", device_type.0),
    };
    name.to_owned()
}

/// A tensor in memory of this process that somebody lent. Dropping it gives it back.
pub struct HostImport<M: ManagedTensorBase = DLManagedTensorVersioned> {
    of: Described,
    managed: Managed<M>,
}

impl<M: ManagedTensorBase> HostImport<M> {
    /// Takes a tensor of any strides that do not run backwards. One without modes is one element, `1:1`.
    ///
    /// # Safety
    /// The tensor's description of its memory must be true, as DLPack requires. Until this is dropped, its elements
    /// must exist and have values, and nobody may write them. While they are written through [`HostImport::view_mut`],
    /// nobody else may use them.
    ///
    /// # Errors
    /// It lies elsewhere, has an element type that kernels have not, more modes than a view, or strides that run
    /// backwards. It is given back then.
    pub unsafe fn new(managed: Managed<M>) -> Result<Self, Refused> {
        let of = Described::of(&managed)?;
        of.lies_on(&[(DLDeviceType::CPU, "the CPU"), (DLDeviceType::CUDAHOST, "pinned memory of CUDA")])?;
        Ok(Self { of, managed })
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.of.dtype
    }

    /// Shape and strides.
    pub fn layout(&self) -> ViewLayout {
        self.of.layout
    }

    /// A view for a kernel that reads.
    ///
    /// # Errors
    /// `T` is not the element type.
    pub fn view<T: Element>(&self) -> Result<View<'_, T, HostMemory>, Refused> {
        self.of.holds::<T>()?;
        // SAFETY: the caller of the unsafe constructor has promised it for this value's lifetime.
        Ok(unsafe { View::from_raw_parts(self.of.ptr, self.of.available(), self.of.layout) })
    }

    /// A view for a kernel that writes.
    ///
    /// # Errors
    /// `T` is not the element type, or the tensor may not be written.
    pub fn view_mut<T: Element>(&mut self) -> Result<ViewMut<'_, T, HostMemory>, Refused> {
        self.of.holds::<T>()?;
        self.of.may_be_written()?;
        // SAFETY: as above, and the borrow is exclusive.
        Ok(unsafe { ViewMut::from_raw_parts(self.of.ptr, self.of.available(), self.of.layout) })
    }

    /// A view for a kernel that reads, with the element type as a value.
    pub fn any(&self) -> AnyView<'_, HostMemory> {
        // SAFETY: as in `view`.
        with_scalar!(self.of.dtype, T => unsafe {
            View::<T, HostMemory>::from_raw_parts(self.of.ptr, self.of.available(), self.of.layout)
        }.erase())
    }

    /// The tensor as it was lent.
    pub fn into_managed(self) -> Managed<M> {
        self.managed
    }
}

impl<M: ManagedTensorBase> fmt::Debug for HostImport<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostImport {} {}", self.of.dtype, self.of.layout)
    }
}

/// Lends the elements of a vector, as a tensor on the CPU. Where some are shared by coordinates, it is for reading
/// only.
///
/// # Errors
/// The layout reaches past the vector.
pub fn export<T: Element>(mut data: Vec<T>, layout: ViewLayout) -> Result<Dlpack, Refused> {
    let (ptr, len) = (data.as_mut_ptr().cast(), Elements(data.len() as u64));
    let memory = Lent { ptr, len, dtype: T::DTYPE, device: DLDevice::CPU, flags: DlpackFlags::empty() };
    // SAFETY: the vector owns its elements, at an address that does not change, and goes with the tensor.
    unsafe { memory.finish(Box::new(data), layout) }
}

/// The same for reading, of elements that are shared.
///
/// # Errors
/// The layout reaches past the elements.
pub fn export_shared<T: Element>(data: &Arc<Vec<T>>, layout: ViewLayout) -> Result<Dlpack, Refused> {
    let (ptr, len) = (data.as_ptr().cast_mut().cast(), Elements(data.len() as u64));
    let memory = Lent { ptr, len, dtype: T::DTYPE, device: DLDevice::CPU, flags: DlpackFlags::READ_ONLY };
    // SAFETY: the vector is kept by its reference, which goes with the tensor, and nobody writes it.
    unsafe { memory.finish(data.clone(), layout) }
}

/// The same of a tensor, with its own layout.
///
/// # Errors
/// None but for want of memory.
pub fn export_tensor(mut tensor: Tensor) -> Result<Dlpack, Refused> {
    let (dtype, layout, start) = (tensor.dtype(), tensor.layout().layout, tensor.start().0 as usize);
    let len = tensor.raw(Access::Read).available;
    let ptr = tensor.storage_mut()[start..].as_mut_ptr().cast();
    let memory = Lent { ptr, len, dtype, device: DLDevice::CPU, flags: DlpackFlags::empty() };
    // SAFETY: the tensor owns its elements, at an address that does not change, and goes with what is lent.
    unsafe { memory.finish(Box::new(tensor), layout) }
}

/// Memory that is lent.
struct Lent {
    ptr: *mut c_void,
    len: Elements,
    dtype: DType,
    device: DLDevice,
    flags: DlpackFlags,
}

impl Lent {
    /// # Safety
    /// `len` elements at `ptr` are there for as long as `owner` is, and nobody writes them, nor reads them unless the
    /// flags say so.
    unsafe fn finish<C: OpaqueContext>(self, owner: C, layout: ViewLayout) -> Result<Dlpack, Refused> {
        let span = layout.span().filter(|span| *span <= self.len.0).ok_or_else(|| Refused {
            what: "the layout reaches past the memory that is lent",
            found: format!("{layout} in {}", self.len),
            required: "1 + sum((extent-1)*stride) elements, and no extent or stride below 0".into(),
            because: "whoever takes the tensor trusts what it says",
            help: "lend memory that holds all of it, or a smaller shape",
        })?;
        let mut flags = self.flags;
        if span > 0 && !layout.is_injective() {
            flags |= DlpackFlags::READ_ONLY;
        }
        let failed = |found: String| Refused {
            what: "the tensor cannot be described",
            found,
            required: "memory for its extents and strides".into(),
            because: "they are lent with it",
            help: "free memory first",
        };
        let mut lent = Dynamic::new(layout.shape().to_vec(), layout.stride().to_vec())
            .initialize(owner)
            .map_err(|e| failed(e.to_string()))?;
        // DLPack requires a null address without elements.
        lent.set_data(if span == 0 { core::ptr::null_mut() } else { self.ptr });
        lent.set_dtype(data_type(self.dtype)).set_device(self.device);
        lent.set_flags(flags).map_err(|e| failed(e.to_string()))?;
        // SAFETY: the layout lies in memory that goes with the tensor; the flags are those of that memory.
        Ok(unsafe { lent.finish() })
    }
}

#[cfg(all(test, feature = "ndarray"))]
mod tests;
