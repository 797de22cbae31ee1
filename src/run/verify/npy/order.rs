//! The byte order of arrays.

use crate::dtype::DType;

/// Whether elements of this descriptor are stored in the byte order that this machine does not have; `None` where they are not of
/// type `dtype`.
pub(super) fn of(descr: &str, dtype: DType) -> Option<bool> {
    if dtype.npy_descriptors().contains(&descr) {
        return Some(cfg!(target_endian = "big"));
    }
    let little = format!("<{}", descr.strip_prefix('>')?);
    // The bytes of a void have no order.
    (!little.starts_with("<V") && dtype.npy_descriptors().contains(&little.as_str()))
        .then_some(cfg!(target_endian = "little"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_order_is_known_for_each_type() {
        let (native, other) = (Some(cfg!(target_endian = "big")), Some(cfg!(target_endian = "little")));
        assert_eq!((of("<f4", DType::F32), of(">f4", DType::F32)), (native, other));
        assert_eq!((of("<u2", DType::Bf16), of(">u2", DType::Bf16)), (native, other));
        assert_eq!((of("|V2", DType::Bf16), of(">V2", DType::Bf16)), (native, None));
        assert_eq!((of("<f8", DType::F32), of("<f2", DType::Bf16)), (None, None));
    }
}
