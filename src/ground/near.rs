//! Similar words, to suggest for a mistyped one.

use strsim::osa_distance;

/// The known word that is nearest, where no more than a third of its letters and one differ, and half of them at most; among equals
/// the first in order.
pub(crate) fn nearest<'n>(word: &str, known: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let alike = known.into_iter().map(|name| (osa_distance(word, name), name));
    let near = |distance: usize, name: &str| {
        let (short, long) = (name.len().min(word.len()), name.len().max(word.len()));
        distance <= (1 + short / 3).min(long / 2)
    };
    alike.filter(|(distance, name)| near(*distance, name)).min().map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_that_differ_are_counted() {
        let told: Vec<usize> =
            [("", "abc"), ("abc", "abc"), ("dytpe", "dtype"), ("rellu", "relu"), ("kitten", "sitting"), ("ä", "a")]
                .map(|(word, other)| osa_distance(word, other))
                .to_vec();
        assert_eq!(told, [3, 0, 1, 1, 3, 1]);
        assert_eq!(nearest("elementwise_ad", ["sgemm", "elementwise_add"]), Some("elementwise_add"));
        assert_eq!(nearest("conv", ["sgemm", "elementwise_add"]), None);
        assert_eq!(nearest("foo", ["cos", "log"]), None);
        assert_eq!(nearest("exq", ["exp", "log"]), Some("exp"));
    }
}
