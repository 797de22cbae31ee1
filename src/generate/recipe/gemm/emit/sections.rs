//! The functions of a text for sm_90a, in order.

use super::Sm90a;
use crate::plan::Groups;
use crate::recipe::product::Tensor;

/// Functions that stand together in a file of `templates/gemm`.
pub(super) enum Section<'a> {
    /// Clears what boxes leave of a stage.
    Outside,
    /// Which stages hold the right k-tile already.
    Resident,
    Streamed,
    /// The k-tile of a place.
    KTile,
    /// The k-tile of a group of rows.
    FromGroup,
    /// The k-tile of a group along K.
    Later,
    Producer,
    Pack,
    /// Epilogue inputs: read where they are used.
    Read,
    /// The same, prefetched.
    Ahead,
    Round,
    TmaStore,
    Scatter,
    Store,
    StreamK,
    /// The mainloop whose sums move to f32 after so many k-tiles, and elements of K.
    Promoted([u32; 2]),
    Wgmma,
    /// The scales of D, and what D is quantised by.
    Quantise(&'a Tensor),
    Keep,
    /// The consumers whose mainloop overlaps with the epilogue.
    Overlapped,
    Consumer,
}

impl Sm90a<'_> {
    /// What this text consists of.
    pub(super) fn sections(&self) -> Vec<Section<'_>> {
        let (c, r) = (&self.c, self.r);
        let reads = !c.reads().is_empty();
        let of_groups = match c.groups() {
            Groups::None => None,
            Groups::Rows | Groups::Masked => Some(Section::FromGroup),
            Groups::K => Some(Section::Later),
        };
        let all = [
            c.cuts().then_some(Section::Outside),
            Some(if c.part.stays() { Section::Resident } else { Section::Streamed }),
            Some(Section::KTile),
            of_groups,
            Some(Section::Producer),
            Some(Section::Pack),
            reads.then_some(Section::Read),
            (!r.ahead.is_empty()).then_some(Section::Ahead),
            Some(Section::Round),
            Some(Section::TmaStore),
            c.scatters().then_some(Section::Scatter),
            Some(Section::Store),
            c.streams_k().then_some(Section::StreamK),
            Some(c.promotes().map_or(Section::Wgmma, Section::Promoted)),
            c.scale_d().map(Section::Quantise),
            r.keeps().then_some(Section::Keep),
            Some(if r.has_meanwhile() { Section::Overlapped } else { Section::Consumer }),
        ];
        all.into_iter().flatten().collect()
    }
}
