use std::sync::atomic::{AtomicUsize, Ordering};

use ::dlpark::ffi::{DLDataTypeCode, DLManagedTensor};
use expect_test::expect;

use super::*;
use crate::dtype::{E4m3, bf16, f16};

/// Memory of a foreign owner, which counts how often it was given back.
struct Theirs {
    memory: Vec<u8>,
    given_back: Arc<AtomicUsize>,
}

impl Drop for Theirs {
    fn drop(&mut self) {
        self.given_back.fetch_add(1, Ordering::Relaxed);
    }
}

/// The description of a tensor of 64 bytes, 0 to 63.
struct Says {
    shape: Vec<i64>,
    strides: Vec<i64>,
    data_type: DLDataType,
    device: DLDevice,
    byte_offset: u64,
    flags: DlpackFlags,
}

fn says(shape: &[i64], strides: &[i64]) -> Says {
    let (data_type, device) = (DLDataType::U8, DLDevice::CPU);
    Says {
        shape: shape.to_vec(),
        strides: strides.to_vec(),
        data_type,
        device,
        byte_offset: 0,
        flags: DlpackFlags::empty(),
    }
}

impl Says {
    fn lent<M: ManagedTensorBase>(self, given_back: &Arc<AtomicUsize>) -> Managed<M> {
        let theirs = Theirs { memory: (0..64).collect(), given_back: given_back.clone() };
        let data = theirs.memory.as_ptr().cast_mut().cast();
        let metadata = Dynamic::new(self.shape, self.strides);
        // SAFETY: nothing of the metadata is borrowed.
        let prepared = unsafe { metadata.prepare_unchecked_as::<M>() }.expect("metadata");
        let mut lent = prepared.initialize(Box::new(theirs));
        lent.set_data(data).set_dtype(self.data_type).set_device(self.device).set_byte_offset(self.byte_offset);
        lent.set_flags(self.flags).expect("no copy");
        // SAFETY: no test reads elements that do not exist.
        unsafe { lent.finish() }
    }

    fn import(self) -> Result<HostImport, Refused> {
        // SAFETY: as above.
        unsafe { HostImport::new(self.lent(&Arc::default())) }
    }
}

/// The elements of a tensor of bytes.
fn bytes(import: &HostImport) -> Vec<u8> {
    let view = import.view::<u8>().expect("bytes");
    ::ndarray::ArrayViewD::try_from(view).expect("an array").iter().copied().collect()
}

#[test]
fn every_element_type_has_one_name_of_dlpack_s() {
    for dtype in DType::ALL {
        assert_eq!(super::dtype(data_type(*dtype)).expect("of the table"), *dtype);
    }
    assert_eq!(TYPES.len(), DType::ALL.len());
}

#[test]
fn element_types_that_kernels_have_not_are_refused() {
    let of = |code, bits, lanes| DLDataType { code, bits, lanes };
    let float = DLDataTypeCode::FLOAT;
    let all = [
        DLDataType::I64,
        DLDataType::U16,
        DLDataType::C64,
        DLDataType::F8E4M3,
        DLDataType::F4E2M1FN,
        of(float, 32, 4),
        of(float, 80, 1),
        of(DLDataTypeCode::BOOL, 1, 1),
        of(DLDataTypeCode(99), 8, 1),
    ];
    let found: Vec<String> = all.iter().map(|d| super::dtype(*d).expect_err("unknown").found).collect();
    expect!["int64, uint16, complex64, float8_e4m3, float4_e2m1fn, float32 x 4, float80, bool1, code 99 of 8 bits"]
        .assert_eq(&found.join(", "));
    expect![[r#"
        error[interop]: kernels have no such element type
          found:    int64
          required: one of float64, float32, float16, bfloat16, float8_e4m3fn, float8_e5m2, int32, int16, int8, uint8, bool
          because:  the bits of an element mean what the kernel was generated for
          help:     convert the tensor first"#]].assert_eq(&super::dtype(DLDataType::I64).expect_err("unknown").to_string());
}

#[test]
fn tensors_of_every_layout_are_views() {
    let told = |says: Says| {
        let import = says.import().expect("a tensor");
        (import.layout().to_string(), bytes(&import))
    };
    assert_eq!(told(says(&[2, 3], &[8, 2])), ("(2,3):(8,2)".into(), vec![0, 2, 4, 8, 10, 12]));
    assert_eq!(told(Says { byte_offset: 5, ..says(&[3], &[1]) }), ("3:1".into(), vec![5, 6, 7]));
    assert_eq!(told(says(&[2, 2], &[0, 1])), ("(2,2):(0,1)".into(), vec![0, 1, 0, 1]));
    assert_eq!(told(says(&[], &[])), ("1:1".into(), vec![0]));
    assert_eq!(told(says(&[3, 0], &[-1, 1])), ("(3,0):(0,1)".into(), vec![]));
    assert_eq!(told(says(&[1, 3], &[-9, 1])), ("(1,3):(0,1)".into(), vec![0, 1, 2]));
}

#[test]
fn old_tensors_may_leave_out_strides() {
    let mut given_back = Arc::default();
    let lent: Managed<DLManagedTensor> = says(&[2, 3], &[3, 1]).lent(&given_back);
    // SAFETY: nobody else uses it.
    unsafe { (*lent.as_ptr()).dl_tensor.strides = core::ptr::null_mut() };
    // SAFETY: its description is true.
    let import = unsafe { HostImport::new(lent) }.expect("a tensor");
    assert_eq!(import.layout().to_string(), "(2,3):(3,1)");
    drop(import);
    assert_eq!(Arc::get_mut(&mut given_back).expect("dropped").get_mut(), &mut 1);
}

#[test]
fn what_was_lent_is_given_back_once_and_not_before() {
    let given_back = Arc::<AtomicUsize>::default();
    let count = || given_back.load(Ordering::Relaxed);
    // SAFETY: its description is true.
    let import =
        unsafe { HostImport::<DLManagedTensorVersioned>::new(says(&[4], &[1]).lent(&given_back)) }.expect("a tensor");
    assert_eq!((count(), bytes(&import)), (0, vec![0, 1, 2, 3]));
    let managed = import.into_managed();
    assert_eq!(count(), 0);
    drop(managed);
    assert_eq!(count(), 1);
    // A tensor that is refused is given back too.
    // SAFETY: as above.
    let refused = unsafe { HostImport::<DLManagedTensorVersioned>::new(says(&[4], &[-1]).lent(&given_back)) };
    assert!(refused.is_err() && count() == 2);
}

#[test]
fn what_cannot_be_is_refused_with_reasons() {
    let mut told = String::new();
    let mut tell = |refused: Refused| told += &format!("{refused}\n");
    tell(says(&[4], &[-1]).import().expect_err("backwards"));
    tell(says(&[1; 6], &[1; 6]).import().expect_err("many modes"));
    tell(Says { device: DLDevice::cuda(1), ..says(&[4], &[1]) }.import().expect_err("elsewhere"));
    tell(Says { device: DLDevice::metal(0), ..says(&[4], &[1]) }.import().expect_err("elsewhere"));
    tell(Says { byte_offset: u64::MAX, ..says(&[4], &[1]) }.import().expect_err("too far"));
    let mut read_only = Says { flags: DlpackFlags::READ_ONLY, ..says(&[4], &[1]) }.import().expect("a tensor");
    tell(read_only.view_mut::<u8>().expect_err("read only"));
    tell(read_only.view::<f16>().expect_err("bytes"));
    let nowhere: Managed<DLManagedTensorVersioned> = says(&[4], &[1]).lent(&Arc::default());
    // SAFETY: nobody else uses it.
    unsafe { (*nowhere.as_ptr()).dl_tensor.data = core::ptr::null_mut() };
    // SAFETY: nothing is read.
    tell(unsafe { HostImport::new(nowhere) }.expect_err("nowhere"));
    let without: Managed<DLManagedTensorVersioned> = says(&[4], &[1]).lent(&Arc::default());
    // SAFETY: nobody else uses it.
    unsafe { (*without.as_ptr()).dl_tensor.strides = core::ptr::null_mut() };
    // SAFETY: nothing is read.
    tell(unsafe { HostImport::new(without) }.expect_err("no strides"));
    expect![[r#"
        error[interop]: the tensor runs backwards
          found:    stride -1 along mode 0 of (4):(-1)
          required: strides of at least 0
          because:  a view begins at its lowest address; vectors and bulk copies of a kernel go forwards from there
          help:     copy the tensor into memory in its own order first, or pass the one that it is the reverse of
        error[interop]: the tensor has too many modes
          found:    rank 6
          required: rank 1 to 5
          because:  kernels are generated for tensors of at most that rank
          help:     merge modes that are contiguous, by a reshape, or pass one slice after the other
        error[interop]: the tensor lies on another device
          found:    CUDA device 1
          required: memory of the CPU or pinned memory of CUDA
          because:  whatever runs the kernel reads the elements where they are
          help:     copy the tensor there first
        error[interop]: the tensor lies on another device
          found:    Metal
          required: memory of the CPU or pinned memory of CUDA
          because:  whatever runs the kernel reads the elements where they are
          help:     copy the tensor there first
        error[interop]: the tensor's description is malformed
          found:    a byte_offset of 18446744073709551615, past the last address
          required: extents, strides and an address as DLPack 1.3 has them
          because:  nothing else says where the elements are
          help:     it is a mistake of whoever lent the tensor
        error[interop]: the tensor is only lent for reading
          found:    the flag READ_ONLY
          required: a tensor without it
          because:  others see the same memory, and rely on its contents
          help:     pass it as an input, or give the kernel memory of its own to write
        error[interop]: the tensor holds another element type
          found:    u8
          required: f16
          because:  a view's type is that of the bits in memory
          help:     convert the tensor first, or ask for the type that it has
        error[interop]: the tensor's description is malformed
          found:    no address for (4) elements
          required: extents, strides and an address as DLPack 1.3 has them
          because:  nothing else says where the elements are
          help:     it is a mistake of whoever lent the tensor
        error[interop]: the tensor's description is malformed
          found:    DLPack 1.3 requires explicit strides when ndim is 1
          required: extents, strides and an address as DLPack 1.3 has them
          because:  nothing else says where the elements are
          help:     it is a mistake of whoever lent the tensor
    "#]]
    .assert_eq(&told);
}

#[test]
fn what_is_lent_says_what_it_is() {
    let layout = |shape: &[i64], stride: &[i64]| ViewLayout::strided(shape, stride).expect("a layout");
    let lent = export(vec![bf16::from_f32(2.0); 12], layout(&[3, 2], &[4, 1])).expect("fits");
    let tensor = lent.validate_export().expect("right");
    assert_eq!((tensor.shape(), tensor.strides(), tensor.dtype()), (&[3, 2][..], Some(&[4, 1][..]), DLDataType::BF16));
    assert_eq!((tensor.device(), lent.flags()), (DLDevice::CPU, DlpackFlags::empty()));
    // SAFETY: it is ours.
    let mut back = unsafe { HostImport::new(lent) }.expect("a tensor");
    assert_eq!(back.any().raw().dtype, DType::Bf16);
    assert!(back.view_mut::<bf16>().is_ok());

    let shared = Arc::new(vec![E4m3(56); 4]);
    let lent = export_shared(&shared, layout(&[4], &[1])).expect("fits");
    assert_eq!((lent.flags(), Arc::strong_count(&shared)), (DlpackFlags::READ_ONLY, 2));
    drop(lent);
    assert_eq!(Arc::strong_count(&shared), 1);
    // One row for many: a write would write each element many times.
    let lent = export(vec![1_i32, 2], layout(&[5, 2], &[0, 1])).expect("fits");
    assert_eq!(lent.flags(), DlpackFlags::READ_ONLY);
    let empty = export(Vec::<f64>::new(), layout(&[0, 2], &[2, 1])).expect("fits");
    assert!(empty.validate_export().expect("right").data_ptr().is_null());

    let tensor = Tensor::of(&[1.0_f32, 2.0, 3.0, 4.0], &[2, 2]).expect("four elements");
    let lent = export_tensor(tensor).expect("fits");
    // SAFETY: it is ours.
    let back = unsafe { HostImport::new(lent) }.expect("a tensor");
    let array = ::ndarray::ArrayViewD::try_from(back.view::<f32>().expect("floats")).expect("an array");
    assert_eq!(array, ::ndarray::arr2(&[[1.0, 2.0], [3.0, 4.0]]).into_dyn());

    let refused = [layout(&[3, 2], &[5, 1]), layout(&[2], &[-1])].map(|layout| export(vec![0_u8; 9], layout));
    let refused = refused.map(|r| r.err().expect("refused").to_string()).join("\n");
    expect![[r#"
        error[interop]: the layout reaches past the memory that is lent
          found:    (3,2):(5,1) in 9 elements
          required: 1 + sum((extent-1)*stride) elements, and no extent or stride below 0
          because:  whoever takes the tensor trusts what it says
          help:     lend memory that holds all of it, or a smaller shape
        error[interop]: the layout reaches past the memory that is lent
          found:    2:-1 in 9 elements
          required: 1 + sum((extent-1)*stride) elements, and no extent or stride below 0
          because:  whoever takes the tensor trusts what it says
          help:     lend memory that holds all of it, or a smaller shape"#]]
    .assert_eq(&refused);
}
