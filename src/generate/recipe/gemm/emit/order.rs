//! What the templates ask of the order of tiles: groups, clusters, and parts of K.

use super::{Common, ScalesText};
use crate::emit;
use crate::plan::{Groups, Int};
use crate::recipe::Isa;
use crate::recipe::gemm::ScaleType;
use crate::tiling::Inner;

/// How many k-tiles the tiles of D have.
pub(super) enum Counts {
    /// All as many.
    Alike,
    /// A tile that clusters share has fewer.
    OfShares,
    /// Those of a group along K have as many as the group.
    OfGroups,
}

impl Common<'_> {
    pub(super) fn batched(&self) -> bool {
        self.part.recipe.has_batches()
    }

    /// Whether groups lie along K.
    pub(super) fn groups_k(&self) -> bool {
        self.groups() == Groups::K
    }

    /// Whether the tensor `T` has a mode L.
    pub(super) fn is_of_several(&self) -> &'static str {
        if self.groups() == Groups::None { "batched" } else { "T::rank > 3" }
    }

    /// How many k-tiles the tiles of D have.
    pub(super) fn counts(&self) -> Counts {
        match self.groups() {
            Groups::K => Counts::OfGroups,
            _ if self.streams_k() => Counts::OfShares,
            _ => Counts::Alike,
        }
    }

    /// The extent along K of a tile of D.
    pub(super) fn k_of_tile(&self) -> &'static str {
        if self.groups_k() { "group_of_k(params, tiles.crd()).k" } else { "params.k" }
    }

    /// The same where its part of A is at hand.
    pub(super) fn k_inside(&self) -> &'static str {
        if self.groups_k() { "int(size<1>(mA))" } else { "params.k" }
    }

    /// K-tiles of a tile of D, where A has as many as that.
    pub(super) fn k_tiles(&self) -> &'static str {
        if self.groups_k() { "ceil_div(group.k, size<1>(TileA{}))" } else { "tiles.k_tiles(size<3>(gA))" }
    }

    /// Whether a CTA of a kernel that TMA stores for may have a tile without k-tiles.
    pub(super) fn may_be_none(&self) -> &'static str {
        if self.groups_k() { "true" } else { "!TmaStore || splits > 1" }
    }

    pub(super) fn grouped(&self) -> bool {
        self.part.tiling.order.groups.is_some()
    }

    pub(super) fn groups(&self) -> Groups {
        self.part.recipe.groups
    }

    /// How many rows of D there are where a tile lies.
    pub(super) fn rows_d(&self) -> &'static str {
        if self.grouped() { "rows_of(crd_D)" } else { "params.m" }
    }

    /// The rows that tiles of a cluster are counted of.
    pub(super) fn rows_of_tiles(&self) -> &'static str {
        if self.grouped() { "rows" } else { "params.m" }
    }

    /// The parameter that says where groups end.
    pub(super) fn ends(&self) -> String {
        self.groups().operand().map_or_else(String::new, str::to_lowercase)
    }

    /// Whether groups lie one after the other.
    pub(super) fn follow(&self) -> bool {
        self.groups() == Groups::Rows
    }

    /// Whether a warpgroup stores its rows of a slice without the others.
    pub(super) fn stores_apart(&self) -> &'static str {
        if self.grouped() { "false" } else { "TmaStore" }
    }

    /// Tiles of a cluster in a group of rows.
    pub(super) fn pieces(&self) -> String {
        self.part.tiling.order.pieces.first().map_or_else(String::new, |pieces| self.of_order(&pieces.extent))
    }

    /// CTAs of a cluster along (M,N).
    pub(super) fn cluster_type(&self) -> String {
        let [along_m, along_n, _] = self.part.tiling.cluster;
        emit::shape_type([along_m.into(), along_n.into()])
    }

    /// The mode that tiles of a group lie along, and the other.
    pub(super) fn raster(&self) -> [&'static str; 2] {
        self.part.own.along().modes()
    }

    /// CTAs of a tile, along K.
    pub(super) fn splits(&self) -> u32 {
        self.part.tiling.splits()
    }

    /// What a cluster computes of the number of a tile, in order: names and values.
    pub(super) fn order(&self) -> impl Iterator<Item = (&str, String)> {
        self.part.tiling.order.of_piece().into_iter().map(|(name, value)| (name, self.of_order(value)))
    }

    /// The first k-tile of a CTA, and their number.
    pub(super) fn k_range(&self) -> [String; 2] {
        let Inner { first, trips, .. } = &self.part.tiling.order.inner;
        [first, trips].map(|value| self.of_order(value))
    }

    pub(super) fn of_order(&self, value: &Int) -> String {
        let name = |name: &String| if name == "group" { "params.group".to_owned() } else { name.clone() };
        let names: Vec<String> = self.part.tiling.order.steps.names.iter().map(name).collect();
        emit::cxx(value, &names)
    }

    /// Whether clusters share tiles along K.
    pub(super) fn streams_k(&self) -> bool {
        self.part.tiling.streams_k()
    }

    /// The scales of blocks of A and B.
    pub(super) fn scales(&self) -> &[ScalesText] {
        &self.scales
    }

    pub(super) fn scale_type(&self) -> ScaleType {
        self.part.recipe.scale_type
    }

    /// Whether they are powers of two, a byte each.
    pub(super) fn has_exponents(&self) -> bool {
        self.scale_type() == ScaleType::Ue8m0
    }

    /// The type of a scale in global memory.
    pub(super) fn scale(&self) -> &'static str {
        self.scale_type().dtype().cxx()
    }

    pub(super) fn has_scales(&self) -> bool {
        !self.scales.is_empty()
    }

    /// Whether a CTA computes its tile from the turn's number, instead of advancing from the tile before.
    pub(super) fn finds_anew(&self) -> bool {
        self.part.isa == Isa::Sm80
    }

    /// After how many k-tiles, and elements of K, a sum moves to f32.
    pub(super) fn promotes(&self) -> Option<[u32; 2]> {
        let promotion = self.part.tiling.mmas.iter().find_map(|mma| mma.promotion.as_ref())?;
        Some([promotion.every, self.part.recipe.promote])
    }
}
