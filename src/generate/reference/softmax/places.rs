//! Where the rows of sequences lie: one after the other, and in pages.

use super::{Sequence, elements, size};
use crate::tensor::{Elements, Tensor};

/// The sequences between these starts, which never go back; what lies ahead of the first and behind the last has no keys.
pub(super) fn between(starts: [&Tensor; 2], [queries, keys]: [usize; 2]) -> Vec<Sequence> {
    let of = |tensor: &Tensor, most: usize| -> Vec<usize> {
        Elements::starting_at(tensor, 0).map(|(value, _)| size(value as i64).min(most)).collect()
    };
    let [of_queries, of_keys] = [of(starts[0], queries), of(starts[1], keys)];
    let (mut all, mut begin) = (Vec::new(), 0);
    for (number, end) in of_queries.iter().copied().chain([queries]).enumerate() {
        let end = end.max(begin);
        let own = |at: usize| of_keys.get(at).copied().unwrap_or(0);
        let keys = if number == 0 || number == of_queries.len() { [0; 2] } else { [own(number - 1), own(number)] };
        all.push(Sequence { queries: [begin, end], keys: [keys[0], keys[1].max(keys[0])] });
        begin = end;
    }
    all
}

/// Where the keys of all sequences lie, as numbers of rows of pages, and which of them each sequence has.
pub(super) fn in_pages(
    [table, lengths]: [&Tensor; 2],
    [pages, page]: [usize; 2],
    batches: usize,
    limit: Option<usize>,
) -> Option<(Vec<usize>, Vec<[usize; 2]>)> {
    let [table, lengths] = [table, lengths].map(elements);
    let entries = table.len() / batches.max(1);
    let (mut places, mut keys) = (Vec::new(), Vec::new());
    for batch in 0..batches {
        let begin = places.len();
        let most = if pages > 0 { limit.unwrap_or(usize::MAX).min(entries * page) } else { 0 };
        let length = size(*lengths.get(batch)? as i64).min(most);
        let place = |key: usize| {
            let entry = table.get(batch * entries + key / page)?;
            Some(size(*entry as i64).min(pages - 1) * page + key % page)
        };
        places.extend((0..length).map(place).collect::<Option<Vec<_>>>()?);
        keys.push([begin, places.len()]);
    }
    Some((places, keys))
}

/// Rows at these places.
pub(super) fn gathered(all: &[f32], places: &[usize], rows: usize) -> Vec<f32> {
    let elements = all.len() / rows.max(1);
    places.iter().flat_map(|place| &all[place * elements..(place + 1) * elements]).copied().collect()
}
