//! Memory that outlives a launch.

use core::ops::Range;

/// Memory that passes from one launch to the next, with [`Data::Keep`](crate::Data::Keep): its bytes, and which of them are initialised.
///
/// If the first buffers of each launch are the same memories in the same order, their addresses stay, unless
/// [`Placement`](crate::Placement) changes. So a launch may follow pointers that an earlier one stored.
///
/// ```
/// use ptx_exec::{Buffer, Data, DeviceMemory, Module};
///
/// let module = Module::parse(include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/scale.ptx")))?;
/// let (x, mut y) = ([1_f32.to_le_bytes(); 70].concat(), vec![0_u8; 280]);
/// let mut between = DeviceMemory::uninitialized(280);
/// let launch = || Ok::<_, ptx_exec::Error>(module.launch("scale")?.grid(&[3]).block(&[32]));
/// let rest = [2_f32.to_le_bytes(), 70_u32.to_le_bytes()];
/// let first = launch()?.input("x", &x).arg_buffer(Buffer::new("between", Data::Keep(&mut between)));
/// first.arg_bytes(&rest[0]).arg_bytes(&rest[1]).run()?;
/// let second = launch()?.arg_buffer(Buffer::new("between", Data::Keep(&mut between))).output("y", &mut y);
/// second.arg_bytes(&rest[0]).arg_bytes(&rest[1]).run()?;
/// assert_eq!(y[..4], 4_f32.to_le_bytes());
/// # Ok::<(), ptx_exec::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceMemory {
    pub(super) bytes: Vec<u8>,
    /// Sorted, without overlaps.
    pub(super) unwritten: Vec<Range<u64>>,
}

impl DeviceMemory {
    /// Memory with these bytes.
    pub fn new(bytes: Vec<u8>) -> DeviceMemory {
        DeviceMemory { bytes, unwritten: Vec::new() }
    }

    /// Memory of so many bytes that nobody has written.
    pub fn uninitialized(bytes: usize) -> DeviceMemory {
        let unwritten = if bytes == 0 { Vec::new() } else { core::iter::once(0..bytes as u64).collect() };
        DeviceMemory { bytes: vec![UNWRITTEN; bytes], unwritten }
    }

    /// Its contents.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The uninitialised bytes. A launch without mode `init` leaves all memory that it may write initialised.
    pub fn unwritten(&self) -> &[Range<u64>] {
        &self.unwritten
    }
}

/// The fill byte of uninitialised memory: fresh memory is not zero.
pub(super) const UNWRITTEN: u8 = 0xcd;
