//! What each text has of its own: the settings for its group of architectures. Types, layouts and the epilogue are the recipe's.

use super::{Consumers, Gemm};
use crate::recipe::Raster;
use crate::recipe::product::Extents;

/// The settings of one text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TextSettings {
    /// (BM,BN,BK).
    pub(super) tile: Extents<3>,
    pub(super) stages: u32,
    pub(super) schedule: Consumers,
    /// CTAs of a cluster along M and N.
    pub(super) cluster: Extents<2>,
    pub(super) split_k: u32,
    pub(super) stream_k: u32,
    pub(super) ctas: u32,
    pub(super) group: Option<u32>,
    raster: Option<Raster>,
}

impl Gemm {
    /// The settings of the text for sm_90a.
    pub(super) fn sm90a(&self) -> TextSettings {
        let Gemm { tile, stages, schedule, cluster, split_k, stream_k, ctas, group, raster, .. } = *self;
        TextSettings { tile, stages, schedule, cluster, split_k, stream_k, ctas, group, raster }
    }

    /// The settings of the text for older architectures, which have no clusters.
    pub(super) fn sm80(&self) -> TextSettings {
        TextSettings {
            tile: self.sm80_tile,
            stages: self.sm80_stages,
            schedule: Consumers::Cooperative,
            cluster: Extents([1, 1]),
            split_k: 1,
            stream_k: self.sm80_stream_k,
            ctas: self.sm80_ctas,
            group: self.group,
            raster: self.raster,
        }
    }
}

impl TextSettings {
    /// The mode along which the tiles of a group lie: the longer mode of the cluster. Consecutive tiles then need the
    /// same tile of the operand that multicast does not share. For a square cluster it is the longer mode of the tile.
    pub(super) fn along(&self) -> Raster {
        let [along_m, along_n] = self.cluster.0;
        let [bm, bn, _] = self.tile.0;
        let along_n = along_m < along_n || (along_m == along_n && bm < bn);
        self.raster.unwrap_or(if along_n { Raster::AlongN } else { Raster::AlongM })
    }

    /// The operand that may stay resident, 0 for A and 1 for B: the operand of the mode of groups if a group has
    /// several tiles, else the other one.
    pub(super) fn stays(&self) -> usize {
        let along = self.along().mode();
        if self.group == Some(1) { 1 - along } else { along }
    }
}
