//! Tensor maps, encoded by the driver.

use core::mem::MaybeUninit;
use std::borrow::Cow;

use cudarc::driver::sys;

use crate::dtype::DType;
use crate::launch::error::DriverError;
use crate::plan::Binding;
use crate::tiling::{MapSwizzle, MapType, TensorMap, TensorMapSpec};
use crate::units::Bytes;

/// The parameters of a launch, its tensor maps in their places; where it has a workspace, that is its address.
pub(crate) fn with_maps(binding: &Binding, workspace: u64) -> Result<Cow<'_, [u8]>, DriverError> {
    let mut params = Cow::Borrowed(binding.params());
    for map in binding.tensor_maps() {
        let base = if map.in_workspace { workspace } else { 0 };
        let TensorMap(words) = encode(&TensorMapSpec { address: base + map.spec.address, ..map.spec })?;
        let slots = params.to_mut()[map.param_offset..].chunks_exact_mut(size_of::<u64>());
        slots.zip(words).for_each(|(slot, word)| slot.copy_from_slice(&word.to_ne_bytes()));
    }
    Ok(params)
}

fn encode(spec: &TensorMapSpec) -> Result<TensorMap, DriverError> {
    let mut map = MaybeUninit::<sys::CUtensorMap>::zeroed();
    let steps = [1_u32; 5];
    // SAFETY: every array has as many entries as the rank says, 2 here and 5 at most, and lives for the call, which writes 128 bytes
    // to a `CUtensorMap`, aligned as it has to be. The address is kept and not used.
    let encoded = unsafe {
        sys::cuTensorMapEncodeTiled(
            map.as_mut_ptr(),
            data_type(spec.dtype),
            spec.rank,
            spec.address as *mut core::ffi::c_void,
            spec.dims.as_ptr(),
            spec.strides.as_ptr(),
            spec.extents.as_ptr(),
            steps.as_ptr(),
            sys::CUtensorMapInterleave::CU_TENSOR_MAP_INTERLEAVE_NONE,
            swizzle(spec.swizzle),
            promotion(spec.promotion()),
            sys::CUtensorMapFloatOOBfill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        )
    };
    encoded.result().map_err(DriverError::of("cuTensorMapEncodeTiled"))?;
    // SAFETY: all bytes were zeroed, and any are a `CUtensorMap`.
    let map = unsafe { map.assume_init() };
    Ok(TensorMap(map.opaque))
}

fn promotion(bytes: Bytes) -> sys::CUtensorMapL2promotion {
    match bytes.0 {
        256 => sys::CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
        _ => sys::CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
    }
}

fn data_type(ty: MapType) -> sys::CUtensorMapDataType {
    use sys::CUtensorMapDataType as Type;
    match ty.dtype() {
        _ if ty == MapType::Tf32 => Type::CU_TENSOR_MAP_DATA_TYPE_TFLOAT32,
        DType::F64 => Type::CU_TENSOR_MAP_DATA_TYPE_FLOAT64,
        DType::F32 => Type::CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
        DType::F16 => Type::CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
        DType::Bf16 => Type::CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
        DType::I32 => Type::CU_TENSOR_MAP_DATA_TYPE_INT32,
        // TMA moves bits; only zeros outside of the matrix have a type.
        other if other.bits() == 16 => Type::CU_TENSOR_MAP_DATA_TYPE_UINT16,
        _ => Type::CU_TENSOR_MAP_DATA_TYPE_UINT8,
    }
}

fn swizzle(swizzle: MapSwizzle) -> sys::CUtensorMapSwizzle {
    use sys::CUtensorMapSwizzle as Swizzle;
    match swizzle {
        MapSwizzle::None => Swizzle::CU_TENSOR_MAP_SWIZZLE_NONE,
        MapSwizzle::B32 => Swizzle::CU_TENSOR_MAP_SWIZZLE_32B,
        MapSwizzle::B64 => Swizzle::CU_TENSOR_MAP_SWIZZLE_64B,
        MapSwizzle::B128 => Swizzle::CU_TENSOR_MAP_SWIZZLE_128B,
    }
}
