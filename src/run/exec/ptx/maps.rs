//! Tensor maps and clusters of a launch: what a driver would check.

use super::code::Code;
use super::error::Error;
use super::launch::Launch;
use super::memory::Memory;
use crate::tiling::{MapSwizzle, TensorMapSpec};

/// Blocks of a cluster, at most: more than 8 have to be asked for.
const MOST_BLOCKS: u32 = 16;

/// A tensor map among the parameters.
#[derive(Clone, Copy, Debug)]
pub(super) struct LaunchMap {
    pub(super) offset: usize,
    pub(super) buffer: usize,
    pub(super) byte: u64,
    pub(super) spec: TensorMapSpec,
}

/// What is wrong with a map, as `cuTensorMapEncodeTiled` checks it.
fn flaw(spec: &TensorMapSpec) -> Option<(&'static str, String)> {
    let rank = spec.rank as usize;
    if !(1..=spec.dims.len()).contains(&rank) {
        return Some(("1 to 5 modes", format!("{rank} modes")));
    }
    let size = spec.dtype.bytes().0;
    let inner = u64::from(spec.extents[0]) * size;
    if !spec.address.is_multiple_of(16) {
        return Some(("an address that is a multiple of 16 bytes", format!("{:#x}", spec.address)));
    }
    if let Some(d) = spec.dims[..rank].iter().find(|d| !(1..=1 << 32).contains(*d)) {
        return Some(("extents of 1 to 2^32", format!("{d}")));
    }
    if let Some(s) = spec.strides[..rank - 1].iter().find(|s| !s.is_multiple_of(16) || **s >= 1 << 40) {
        return Some(("strides that are multiples of 16 bytes, below 2^40", format!("{s} B")));
    }
    if let Some(e) = spec.extents[..rank].iter().find(|e| !(1..=256).contains(*e)) {
        return Some(("extents of a box of 1 to 256", format!("{e}")));
    }
    if !inner.is_multiple_of(16) {
        return Some(("rows of a box that are multiples of 16 bytes", format!("{inner} B")));
    }
    let span = spec.swizzle.span().map_or(inner, |s| s.0);
    (spec.swizzle != MapSwizzle::None && inner > span)
        .then(|| ("rows of a box within the span of its swizzle", format!("{inner} B, swizzle {}", spec.swizzle)))
}

impl Launch<'_> {
    /// The maps with the addresses of the device: those that the kernel knows, and those of the tensors.
    pub(super) fn placed_maps(
        &self,
        memory: &Memory,
        buffers: &[usize],
        params: u64,
    ) -> Result<Vec<(u64, TensorMapSpec)>, Error> {
        let place = |map: &LaunchMap| {
            let Some(index) = buffers.get(map.buffer) else {
                return Err(Error::launch("a tensor map is of no buffer").found(format!("buffer {}", map.buffer)));
            };
            if !map.offset.is_multiple_of(64) || map.offset.saturating_add(128) > self.params.len() {
                return Err(Error::launch("a tensor map lies outside of the parameters")
                    .found(format!("offset {}", map.offset))
                    .required("128 bytes of them, at a multiple of 64"));
            }
            let address = memory.allocations[*index].start.wrapping_add(map.byte);
            let spec = TensorMapSpec { address, ..map.spec };
            match flaw(&spec) {
                None => Ok((params + map.offset as u64, spec)),
                Some((required, found)) => {
                    Err(Error::launch("a tensor map is none that a driver encodes").found(found).required(required))
                }
            }
        };
        self.maps.iter().map(place).collect()
    }

    /// The cluster that the entry is compiled for, or that the launch asks for.
    pub(super) fn cluster_of(&self, code: &Code) -> Result<[u32; 3], Error> {
        let cluster = match (code.cluster.filter(|c| c.iter().all(|n| *n > 0)), self.cluster) {
            (Some(own), Some(asked)) if own != asked => {
                return Err(Error::launch("the entry is compiled for another cluster")
                    .found(format!("cluster {asked:?}"))
                    .required(format!("cluster {own:?}, by .reqnctapercluster")));
            }
            (own, asked) => own.or(asked).unwrap_or([1; 3]),
        };
        let blocks = cluster.iter().try_fold(1_u32, |n, c| n.checked_mul(*c)).filter(|n| (1..=MOST_BLOCKS).contains(n));
        let divides = cluster.iter().zip(&self.grid).all(|(c, g)| *c > 0 && g % c == 0);
        if blocks.is_none() || !divides {
            return Err(Error::launch("the cluster cannot be run")
                .found(format!("cluster {cluster:?}, grid {:?}", self.grid))
                .required(format!("at most {MOST_BLOCKS} blocks, and a grid that is a multiple of it")));
        }
        Ok(cluster)
    }
}
