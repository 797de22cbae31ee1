//! Groups: which matrix of B a row is multiplied with, and which part of K a sum is over.

use core::ops::Range;

use crate::plan::Groups;
use crate::tensor::{Elements, Tensor};

/// The matrix of B that a row is multiplied with.
pub(super) enum Grouping {
    /// That of its own batch.
    None,
    /// That of its group, by row.
    Rows(Vec<Option<usize>>),
    /// That of its batch, which has so many rows.
    Masked(Vec<usize>),
    /// The only one: a batch of D has these k.
    K(Vec<Range<usize>>),
}

impl Grouping {
    /// Of M rows, or K, in groups with these ends, or counts.
    pub(super) fn of(groups: Groups, ends: Option<&Tensor>, [m, k]: [i64; 2]) -> Self {
        let m = usize::try_from(if groups == Groups::K { k } else { m }).unwrap_or(0);
        let all = ends.into_iter().flat_map(|tensor| Elements::starting_at(tensor, 0));
        let ends = all.map(|(end, _)| (end as i64).clamp(0, m as i64) as usize);
        match groups {
            Groups::None => Grouping::None,
            Groups::Masked => Grouping::Masked(ends.collect()),
            Groups::K => {
                let all: Vec<usize> = core::iter::once(0).chain(ends).collect();
                Grouping::K(all.windows(2).map(|of| of[0]..of[1].max(of[0])).collect())
            }
            Groups::Rows => {
                let mut rows = Vec::with_capacity(m);
                ends.enumerate().for_each(|(group, end)| rows.resize(end.max(rows.len()), Some(group)));
                rows.resize(m, None);
                Grouping::Rows(rows)
            }
        }
    }

    /// None where a row is of no group.
    pub(super) fn matrix(&self, m: usize, l: usize) -> Option<usize> {
        match self {
            Grouping::None => Some(l),
            Grouping::Rows(rows) => rows.get(m).copied().flatten(),
            Grouping::Masked(counts) => counts.get(l).filter(|count| m < **count).map(|_| l),
            Grouping::K(_) => Some(0),
        }
    }

    /// The k that a sum is over.
    pub(super) fn range(&self, l: usize, k: usize) -> Range<usize> {
        match self {
            Grouping::K(ranges) => ranges.get(l).cloned().unwrap_or(0..0),
            _ => 0..k,
        }
    }
}
