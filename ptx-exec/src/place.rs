//! Places the memory of a launch, and fills it.

use super::Error;
use super::code::{Code, Inst, Op};
use super::device_memory::UNWRITTEN;
use super::launch::{Buffer, Data, Launch, Placement};
use super::launch_run::variable;
use super::lower::special::SPECIAL;
use super::machine::{RESERVED, SharedPlace, WINDOW};
use super::map_image::MAP_BYTES;
use super::maps::MapPlace;
use super::memory::Memory;
use super::tensor::Elements;

/// Memory, and in it the buffers, the variables of the module and the parameters.
pub(super) struct Placed {
    pub(super) memory: Memory,
    pub(super) buffers: Vec<usize>,
    pub(super) globals: Vec<usize>,
    pub(super) param: usize,
    /// The workspace that the blocks of a cooperative launch share.
    pub(super) workspace: Option<usize>,
}

/// The shared memory of a block: each variable has room around it.
pub(super) struct Shared {
    pub(super) places: Vec<SharedPlace>,
    /// Offset of each variable.
    pub(super) offsets: Vec<u64>,
    /// Offset of the memory that the system reserves, if the entry uses it.
    pub(super) reserved: Option<u64>,
    /// Total size.
    pub(super) bytes: u64,
}

/// Bytes of the workspace of a cooperative launch: its size in 4 bytes, then the grid barrier in 4.
const WORKSPACE: u32 = 64;

/// CUDA C++ Programming Guide, "Compute Capabilities": 227 KB a block on 9.0.
const MOST_SHARED: u64 = 227 << 10;

/// Room for parameters: PTX ISA, ".param", has at most 32764 bytes of them.
const MOST_PARAMS: u64 = 64 << 10;

/// The largest alignment of a buffer, as of a variable.
const MOST_ALIGN: u64 = 1 << 20;

impl Buffer<'_> {
    /// Its size, with the padding before its first byte.
    fn placed_bytes(&self) -> Result<u64, Error> {
        let refuse = |what: &str, found: String, required: String| {
            Err(Error::launch(what).found(format!("{found} of {}", super::parse::clip(&self.name))).required(required))
        };
        let bytes = self.data.size();
        if !self.align.is_power_of_two() || self.align > MOST_ALIGN {
            let required = format!("a power of two of at most {MOST_ALIGN}");
            return refuse("a buffer cannot be aligned", format!("`align` {}", self.align), required);
        }
        if self.offset >= self.align {
            let found = format!("`offset` {} with `align` {}", self.offset, self.align);
            return refuse(
                "the offset of a buffer is not below its alignment",
                found,
                "an offset that is less".to_owned(),
            );
        }
        match bytes.checked_add(self.offset) {
            Some(all) => Ok(all),
            None => refuse("a buffer is too large", format!("{bytes} B"), "bytes that a launch can have".to_owned()),
        }
    }
}

impl Launch<'_> {
    /// Gives everything its address.
    pub(super) fn place(&self, code: &Code) -> Result<Placed, Error> {
        let mut memory = Memory::default();
        let exact = self.placement == Placement::Exact;
        // In the first 4 GiB, where 32 bits of an address tell all of it.
        let param = memory.place("parameters", code.param_bytes, 256, false, false)?;
        memory.allocations[param].is_param = true;
        // Other entries have other parameters and variables: the addresses of the first buffers stay.
        memory.skip_to(MOST_PARAMS);
        let mut buffers = Vec::new();
        for b in &self.buffers {
            let (all, writable) = (b.placed_bytes()?, !matches!(b.data, Data::Read(_)));
            let bytes = all - b.offset;
            let align = if exact { b.align } else { 256 };
            let index = memory.place(&b.name, all, align, exact, writable)?;
            memory.allocations[index].start += b.offset;
            memory.allocations[index].elements = Elements::new(&b.tensors, &super::parse::clip(&b.name), bytes)?;
            buffers.push(index);
        }
        let mut globals = Vec::new();
        for v in &code.globals {
            let name = format!("{}{}", if v.is_const { "const " } else { "" }, v.name);
            let align = if exact { v.align } else { v.align.max(256) };
            globals.push(memory.place(&name, v.bytes.len() as u64, align, exact, !v.is_const)?);
        }
        let workspace = if self.cooperative {
            Some(memory.place("grid workspace", u64::from(WORKSPACE), 256, exact, true)?)
        } else {
            None
        };
        memory.allocate(self.modes.init)?;
        Ok(Placed { memory, buffers, globals, param, workspace })
    }

    pub(super) fn fill(&mut self, code: &Code, placed: &mut Placed) -> Result<(), Error> {
        let Placed { memory, buffers, globals, param, workspace } = placed;
        for (b, index) in self.buffers.iter().zip(buffers.iter()) {
            match &b.data {
                Data::Keep(kept) => {
                    memory.fill(*index, &kept.bytes, false);
                    memory.mark_all_but(*index, &kept.unwritten);
                }
                Data::Scratch(bytes) => memory.fill(*index, &vec![UNWRITTEN; *bytes as usize], b.written),
                given => memory.fill(*index, given.bytes().unwrap_or_default(), b.written),
            }
        }
        for (v, index) in code.globals.iter().zip(globals.iter()) {
            let mut bytes = v.bytes.clone();
            for address in &v.addresses {
                let target = memory.allocations[globals[address.of as usize]].start;
                let value = address.value(target).to_le_bytes();
                let room = bytes.get_mut(address.at as usize..(address.at + address.bytes) as usize);
                room.into_iter().for_each(|room| room.copy_from_slice(&value[..room.len()]));
            }
            // Variables without a value are zeros.
            memory.fill(*index, &bytes, true);
        }
        for (name, data) in &self.variables {
            let number = variable(code, name)?;
            let (of, index) = (&code.globals[number], globals[number]);
            let Some(bytes) = data.bytes() else {
                return Err(Error::launch("a variable of the module is given no contents")
                    .found(format!("scratch for {name}"))
                    .required("its bytes: PTX sets every variable"));
            };
            if bytes.len() != of.bytes.len() {
                return Err(Error::launch("the contents do not fit their variable")
                    .found(format!("{} B for {name}", bytes.len()))
                    .required(format!("{} B", of.bytes.len())));
            }
            memory.fill(index, bytes, true);
        }
        for (offset, buffer, byte) in &self.pointers {
            let Some(index) = buffers.get(*buffer) else {
                return Err(Error::launch("a pointer names an unknown buffer").found(format!("buffer {buffer}")));
            };
            let address = memory.allocations[*index].start.wrapping_add(*byte);
            let Some(room) = self.params.get_mut(*offset..offset.saturating_add(8)) else {
                return Err(Error::launch("a pointer lies outside of the parameters").found(format!("offset {offset}")));
            };
            room.copy_from_slice(&address.to_le_bytes());
        }
        for (place, image) in self.placed_maps(memory, buffers)? {
            match place {
                MapPlace::Param(at) => {
                    let room = self.params.get_mut(at..at + MAP_BYTES as usize);
                    room.into_iter().for_each(|room| room.copy_from_slice(&image.bytes()));
                }
                MapPlace::Buffer(number, at) => {
                    let holder = buffers.get(number).map(|index| memory.allocations[*index].start);
                    holder.into_iter().for_each(|start| memory.fill_at(start + at, &image.bytes(), true));
                }
            }
        }
        memory.fill(*param, &self.params, true);
        if let Some(index) = workspace {
            let mut bytes = [0; WORKSPACE as usize];
            bytes[..4].copy_from_slice(&WORKSPACE.to_le_bytes());
            memory.fill(*index, &bytes, true);
        }
        Ok(())
    }

    /// Places the variables of shared memory.
    pub(super) fn shared(&self, code: &Code) -> Result<Shared, Error> {
        let exact = self.placement == Placement::Exact;
        // No sum wraps: alignments are at most 2^20, and what is placed ends at most at `WINDOW`.
        let place = |end: u64, align: u64, first: bool| {
            let align = align.clamp(1, MOST_ALIGN);
            if exact {
                // An odd multiple: no better aligned than declared.
                (end + 16).next_multiple_of(align * 2) + align
            } else if first {
                (end + 16).next_multiple_of(align.max(1024))
            } else {
                (end + 16).next_multiple_of(align)
            }
        };
        let too_much = |used: u64| {
            Error::launch("a block has too much shared memory")
                .found(format!("{used} B static, {} B dynamic", self.dynamic_smem))
                .required(format!("at most {MOST_SHARED} B, and {WINDOW} B with what alignments leave free"))
        };
        let (mut places, mut offsets) = (Vec::new(), vec![0; code.shared.len()]);
        let (mut end, mut used) = (0, 0_u64);
        for (i, v) in code.shared.iter().enumerate() {
            if let Some(bytes) = v.bytes {
                offsets[i] = place(end, v.align, places.is_empty());
                end = offsets[i].saturating_add(bytes);
                if end > WINDOW {
                    return Err(too_much(used.saturating_add(bytes)));
                }
                used = used.next_multiple_of(v.align.max(1)).saturating_add(bytes);
                places.push(SharedPlace { name: v.name.clone(), start: offsets[i], bytes, rank: 0 });
            }
        }
        // All names of dynamic shared memory are one place.
        let dynamic: Vec<usize> = (0..code.shared.len()).filter(|i| code.shared[*i].bytes.is_none()).collect();
        if let Some(first) = dynamic.first() {
            let align = dynamic.iter().map(|i| code.shared[*i].align).max().unwrap_or(16);
            let start = place(end, if exact { align } else { align.max(1024) }, places.is_empty());
            for i in &dynamic {
                offsets[*i] = start;
            }
            end = start + u64::from(self.dynamic_smem);
            let (name, bytes) = (code.shared[*first].name.clone(), u64::from(self.dynamic_smem));
            places.push(SharedPlace { name, start, bytes, rank: 0 });
        }
        let asks = |i: &Inst| i.op == Op::Sreg && SPECIAL[i.x as usize].starts_with("%reserved_smem");
        let reserved = code.insts.iter().any(asks).then(|| place(end, 128, places.is_empty()));
        if let Some(start) = reserved {
            places.push(SharedPlace { name: "reserved by the system".to_owned(), start, bytes: RESERVED, rank: 0 });
            end = start + RESERVED;
        }
        if used.saturating_add(u64::from(self.dynamic_smem)) > MOST_SHARED {
            return Err(too_much(used));
        }
        Ok(Shared { places, offsets, reserved, bytes: end + 64 })
    }
}
