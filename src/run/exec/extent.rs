//! The caller's memory, as the executor sees it.
//!
//! Tensors that share memory with the caller share it with the executor too: overlapping extents become one region,
//! which keeps its address modulo what binding asks of one.

use crate::plan::BoundTensor;
use crate::view::{Access, ViewLayout};

/// The caller's memory of one tensor.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    data: *mut u8,
    pub(super) bytes: usize,
    pub(super) writable: bool,
    /// Whether its contents count before the launch.
    readable: bool,
    /// Where only elements are the caller's: between them there may be somebody else's.
    elements: Option<Elements>,
}

impl Extent {
    /// Memory that is the caller's to its last byte.
    pub(super) fn whole(data: *mut u8, bytes: usize, writable: bool) -> Extent {
        Extent { data, bytes, writable, readable: !writable, elements: None }
    }

    /// The memory of a bound tensor. Only its elements exist.
    pub(super) fn of(tensor: &BoundTensor) -> Extent {
        let view = &tensor.view;
        let item = view.dtype.bytes().0;
        Extent {
            data: core::ptr::with_exposed_provenance_mut(view.ptr as usize),
            // `bind` has checked that the view lies within an address space.
            bytes: (view.available.0 * item) as usize,
            writable: view.access.writes(),
            readable: view.access.reads(),
            elements: Some(Elements { layout: view.layout.distinct(), item }),
        }
    }

    /// The same memory, for a tensor that is read.
    pub(super) fn to_read(self) -> Extent {
        Extent { writable: false, readable: true, ..self }
    }

    /// The same memory, whose contents count before the launch or not.
    pub(super) fn of_access(self, access: Access) -> Extent {
        Extent { readable: access.reads(), ..self }
    }

    pub(super) fn address(&self) -> u64 {
        self.data as u64
    }

    fn end(&self) -> u64 {
        self.address().saturating_add(self.bytes as u64)
    }

    /// The parts that are the caller's, in bytes from its start.
    fn runs(&self) -> Runs {
        match &self.elements {
            Some(elements) => elements.runs(),
            None => Runs { outer: Vec::new(), at: Vec::new(), run: self.bytes, is_done: self.bytes == 0 },
        }
    }
}

/// The elements of a tensor, each in one place.
#[derive(Clone, Copy, Debug)]
struct Elements {
    layout: ViewLayout,
    /// Bytes of one.
    item: u64,
}

impl Elements {
    fn runs(&self) -> Runs {
        let (shape, stride) = (self.layout.shape(), self.layout.stride());
        let mut outer: Vec<(u64, u64)> =
            self.layout.by_stride().iter().map(|&i| (shape[i] as u64, stride[i] as u64 * self.item)).collect();
        // Modes whose elements follow upon each other are one run.
        let mut run = self.item;
        while let Some((extent, _)) = outer.pop_if(|(_, stride)| *stride == run) {
            run *= extent;
        }
        let at = vec![0; outer.len()];
        Runs { outer, at, run: run as usize, is_done: self.layout.size() == Some(0) }
    }
}

/// Pieces of memory without gaps.
struct Runs {
    /// Extents and strides in bytes, the largest stride first.
    outer: Vec<(u64, u64)>,
    at: Vec<u64>,
    /// Bytes of each.
    run: usize,
    is_done: bool,
}

impl Iterator for Runs {
    type Item = core::ops::Range<usize>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_done {
            return None;
        }
        let start: u64 = self.at.iter().zip(&self.outer).map(|(at, (_, stride))| at * stride).sum();
        self.is_done = true;
        for (at, (extent, _)) in self.at.iter_mut().zip(&self.outer).rev() {
            *at += 1;
            if *at < *extent {
                self.is_done = false;
                break;
            }
            *at = 0;
        }
        Some(start as usize..start as usize + self.run)
    }
}

/// The caller's memory in one piece.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Region {
    /// The caller's address.
    pub(super) address: u64,
    pub(super) bytes: u64,
    /// Whether a tensor in it is written.
    pub(super) is_output: bool,
    /// Whether a tensor in it is read.
    pub(super) is_input: bool,
    /// Indices of the tensors in it, by ascending address.
    pub(super) tensors: Vec<usize>,
}

/// The regions of a job's tensors, by ascending address.
pub(super) fn regions(extents: &[Extent]) -> Vec<Region> {
    let mut order: Vec<usize> = (0..extents.len()).collect();
    order.sort_by_key(|&i| (extents[i].address(), extents[i].bytes, i));
    let mut regions: Vec<Region> = Vec::new();
    for i in order {
        let e = &extents[i];
        match regions.last_mut() {
            Some(r) if e.address() < r.address.saturating_add(r.bytes) => {
                r.bytes = r.bytes.max(e.end() - r.address);
                r.is_output |= e.writable;
                r.is_input |= e.readable;
                r.tensors.push(i);
            }
            _ => regions.push(Region {
                address: e.address(),
                bytes: e.bytes as u64,
                is_output: e.writable,
                is_input: e.readable,
                tensors: vec![i],
            }),
        }
    }
    regions
}

/// The bytes of a region: the caller's own where they are one tensor's in one piece, else a copy of them.
pub(super) enum Bytes<'a> {
    Read(&'a [u8]),
    Write(&'a mut [u8]),
    Copied(Vec<u8>),
}

impl Region {
    /// The bytes of the region, which no other refers to while these do.
    ///
    /// # Safety
    /// What the extents say is readable, and writable where they say so; nobody else writes it, or reads what is written.
    pub(super) unsafe fn bytes<'a>(&self, extents: &'a [Extent]) -> Bytes<'a> {
        let whole = |e: &&Extent| e.runs().next() == Some(0..self.bytes as usize);
        let one = if let [i] = self.tensors[..] { Some(&extents[i]).filter(whole) } else { None };
        // SAFETY: all of it is the caller's, by the contract of this function, and regions do not overlap.
        unsafe {
            match one {
                Some(e) if e.writable => Bytes::Write(core::slice::from_raw_parts_mut(e.data, e.bytes)),
                Some(e) => Bytes::Read(core::slice::from_raw_parts(e.data, e.bytes)),
                None => Bytes::Copied(self.read(extents)),
            }
        }
    }

    /// The bytes of the region: 0 where they are not the caller's.
    ///
    /// # Safety
    /// What the extents say is readable.
    pub(super) unsafe fn read(&self, extents: &[Extent]) -> Vec<u8> {
        let mut bytes = vec![0; self.bytes as usize];
        for extent in self.tensors.iter().map(|&i| &extents[i]) {
            let first = (extent.address() - self.address) as usize;
            for run in extent.runs() {
                let to = &mut bytes[first + run.start..first + run.end];
                // SAFETY: the run is readable by the contract of this function, and `to` has its length.
                unsafe { core::ptr::copy_nonoverlapping(extent.data.add(run.start), to.as_mut_ptr(), to.len()) };
            }
        }
        bytes
    }

    /// Puts fresh bytes of the whole region into those of its tensors that are written.
    ///
    /// # Safety
    /// What the extents say is writable where they say so.
    pub(super) unsafe fn write(&self, extents: &[Extent], fresh: &[u8]) {
        for extent in self.tensors.iter().map(|&i| &extents[i]).filter(|e| e.writable) {
            let first = (extent.address() - self.address) as usize;
            for run in extent.runs() {
                let fresh = &fresh[first + run.start..first + run.end];
                // SAFETY: the run is writable by the contract of this function, and `fresh` has its length.
                unsafe { core::ptr::copy_nonoverlapping(fresh.as_ptr(), extent.data.add(run.start), fresh.len()) };
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) fn extent(address: usize, bytes: usize, writable: bool) -> Extent {
        Extent::whole(std::ptr::without_provenance_mut(address), bytes, writable)
    }

    #[test]
    fn overlapping_extents_share_a_region_and_touching_ones_do_not() {
        let extents = [extent(0x5010, 64, true), extent(0x5000, 32, false), extent(0x5050, 16, false)];
        let regions = regions(&extents);
        let region = |address, bytes, is_output, is_input, tensors: &[usize]| Region {
            address,
            bytes,
            is_output,
            is_input,
            tensors: tensors.to_vec(),
        };
        assert_eq!(regions, [region(0x5000, 80, true, true, &[1, 0]), region(0x5050, 16, false, true, &[2])]);
    }

    #[test]
    fn what_lies_between_elements_is_neither_read_nor_written() {
        let runs = |shape: &[i64], stride: &[i64], item| {
            let layout = ViewLayout::strided(shape, stride).expect("a layout").distinct();
            Elements { layout, item }.runs().map(|run| (run.start, run.end)).collect::<Vec<_>>()
        };
        assert_eq!(runs(&[2, 3], &[5, 1], 4), [(0, 12), (20, 32)]);
        assert_eq!(runs(&[3, 2], &[1, 3], 2), [(0, 12)]);
        assert_eq!(runs(&[2, 2], &[1, 4], 2), [(0, 4), (8, 12)]);
        assert_eq!(runs(&[3], &[2], 1), [(0, 1), (2, 3), (4, 5)]);
        assert_eq!(runs(&[7, 2], &[0, 1], 4), [(0, 8)]);
        assert_eq!(runs(&[0, 2], &[2, 1], 4), []);
        assert_eq!(runs(&[1, 1], &[9, 9], 8), [(0, 8)]);

        // Columns 0 and 2 of a matrix of four columns are written, column 1 is read, and column 3 is somebody else's.
        let mut memory = [[1_u8, 2, 3, 4], [5, 6, 7, 8]];
        let start = memory.as_mut_ptr().cast::<u8>();
        let of = |column: usize, width: i64, stride: i64, writable| Extent {
            data: start.wrapping_add(column),
            bytes: 8 - column,
            writable,
            readable: !writable,
            elements: Some(Elements {
                layout: ViewLayout::strided(&[2, width], &[4, stride]).expect("a layout"),
                item: 1,
            }),
        };
        let extents = [of(0, 2, 2, true), of(1, 1, 1, false)];
        let [region] = &regions(&extents)[..] else { panic!("one region") };
        // SAFETY: all of the memory is there, and nothing else uses it.
        let mut bytes = unsafe { region.read(&extents) };
        assert_eq!(bytes, [1, 2, 3, 0, 5, 6, 7, 0]);
        bytes.fill(9);
        // SAFETY: as above.
        unsafe { region.write(&extents, &bytes) };
        assert_eq!(memory, [[9, 2, 9, 4], [9, 6, 9, 8]]);
    }
}
