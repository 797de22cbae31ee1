//! Tensor maps and clusters of a launch: the checks of a driver.

use super::code::Code;
use super::error::Error;
use super::launch::Launch;
use super::map_image::{Image, MAP_ALIGN, MAP_BYTES, Map};
use super::memory::Memory;
use crate::TensorMap;

/// The most blocks of a cluster; more than 8 need an attribute of the kernel.
const MOST_BLOCKS: u32 = 16;

/// The place of a tensor map of the launch.
#[derive(Clone, Copy, Debug)]
pub(super) enum MapPlace {
    /// At an offset of the parameters.
    Param(usize),
    /// At a byte of a buffer.
    Buffer(usize, u64),
}

/// A tensor map of the launch.
#[derive(Clone, Copy, Debug)]
pub(super) struct LaunchMap {
    pub(super) place: MapPlace,
    pub(super) buffer: usize,
    pub(super) byte: u64,
    pub(super) spec: TensorMap,
}

impl Launch<'_> {
    /// The bytes of the maps, with where they lie.
    pub(super) fn placed_maps(&self, memory: &Memory, buffers: &[usize]) -> Result<Vec<(MapPlace, Image)>, Error> {
        let place = |map: &LaunchMap| {
            let Some(index) = buffers.get(map.buffer) else {
                return Err(Error::launch("a tensor map is of no buffer").found(format!("buffer {}", map.buffer)));
            };
            self.has_room(map.place)?;
            let address = memory.allocations[*index].start.wrapping_add(map.byte);
            let refuse = |required: &str, found: String| {
                Err(Error::launch("no driver encodes this tensor map").found(found).required(required))
            };
            let Some(placed) = Map::placed(&map.spec, address) else {
                return refuse("a type that tensor maps have", format!("elements of {:?}", map.spec.ty));
            };
            match placed.flaw() {
                None => Ok((map.place, Image::of(&placed))),
                Some((required, found)) => refuse(required, found),
            }
        };
        self.maps.iter().map(place).collect()
    }

    fn has_room(&self, place: MapPlace) -> Result<(), Error> {
        let refuse =
            |what: &str, found: String, required: &str| Err(Error::launch(what).found(found).required(required));
        match place {
            MapPlace::Param(at) => {
                if !(at as u64).is_multiple_of(MAP_ALIGN) || at.saturating_add(MAP_BYTES as usize) > self.params.len() {
                    let required = "128 bytes of them, at a multiple of 64";
                    return refuse("a tensor map lies outside of the parameters", format!("offset {at}"), required);
                }
            }
            MapPlace::Buffer(number, at) => {
                let room = self.buffers.get(number).map_or(0, |b| b.data.size());
                if !at.is_multiple_of(MAP_ALIGN) || at.saturating_add(MAP_BYTES) > room {
                    let found = format!("byte {at} of buffer {number}");
                    return refuse(
                        "a tensor map lies outside of its buffer",
                        found,
                        "128 bytes of it, at a multiple of 64",
                    );
                }
            }
        }
        Ok(())
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
