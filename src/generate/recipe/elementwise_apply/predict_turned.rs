//! The requests of a launch that turns tiles: each tensor in the widest vectors that it is aligned to, and tiles at an edge in those
//! that rows are made of.

use super::decide::{Class, Tensor};
use super::launch::{ALIGNED, WHOLE, aligned, derived, whole};
use super::predict::{Launch, requests};
use super::turn;
use crate::model::traffic::Counter;
use crate::tiling::{Place, TileCopy, Tiling};

/// The requests for one tile: coordinates of each lane's first element.
type Requests = Vec<Vec<[i64; 2]>>;

/// How one tensor is moved.
struct Moved {
    /// Elements of a vector along the mode that vectors lie along.
    width: i64,
    requests: Requests,
}

impl Launch<'_> {
    /// The number of blocks.
    pub(super) fn turned(&self, narrower: &[Tiling], counters: &mut [Counter]) -> Option<u64> {
        let (rows, columns) = (self.m[0].extent, self.n.extent);
        let [tile_m, tile_n, _] = self.decision.tiling.tile;
        let mut blocks = 0;
        for (index, counter) in counters.iter_mut().enumerate() {
            let tensor = &self.decision.tensors[index];
            let [inner, edge] = self.moved(tensor, narrower)?;
            blocks = 0;
            for corner in self.corners()? {
                let [m0, n0, batch] = corner?;
                blocks += 1;
                let inside = m0 + tile_m <= rows && n0 + tile_n <= columns;
                let moved = if inside { &inner } else { &edge };
                for lanes in &moved.requests {
                    let lanes = lanes.iter().map(|[m, n]| [m0 + m, n0 + n]);
                    let lanes = lanes.filter(|[m, n]| *m < rows && *n < columns);
                    let lanes = lanes.map(|[m, n]| [m + batch * rows, n]).collect::<Vec<_>>();
                    self.request(counter, index, moved.width, &lanes);
                }
            }
        }
        Some(blocks)
    }

    /// One request of a warp: a vector at once, or its elements one by one; one element for all of them is loaded once.
    fn request(&self, counter: &mut Counter, index: usize, width: i64, lanes: &[[i64; 2]]) {
        let Tensor { class, dtype, .. } = self.decision.tensors[index];
        let bytes = dtype.bytes().0;
        let (times, bytes) = match class {
            Class::Contiguous | Class::Transposed => (1, bytes * width as u64),
            Class::Broadcast => (1, bytes),
            Class::Strided => (width, bytes),
        };
        for element in 0..times {
            counter.request(lanes.iter().map(|[m, n]| self.address(index, *m, n + element)), bytes);
        }
    }

    /// How a tensor is moved in tiles that are whole, and in those at an edge.
    fn moved(&self, tensor: &Tensor, narrower: &[Tiling]) -> Option<[Moved; 2]> {
        let decision = self.decision;
        let is_turned = tensor.class == Class::Transposed;
        let (vec, names) = match is_turned {
            true => (turn::block(&decision.tiling, tensor.name)[0], [aligned(tensor), whole(tensor)]),
            false => (decision.vec, [ALIGNED, WHOLE].map(str::to_owned)),
        };
        let of = |copy: &TileCopy| match is_turned {
            true => copy.name == tensor.name && matches!(copy.from, Place::Global(_)),
            false => matches!(copy.to, Place::Global(_)),
        };
        let moved = |name: &String| {
            let width = derived(decision, self.views, name).clamp(1, vec);
            let level = (vec / width).ilog2() as usize;
            let tiling = level.checked_sub(1).map_or(Some(&decision.tiling), |at| narrower.get(at))?;
            Some(Moved { width, requests: requests(tiling, of)? })
        };
        let [inner, edge] = &names;
        Some([moved(inner)?, moved(edge)?])
    }
}
