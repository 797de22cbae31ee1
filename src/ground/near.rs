//! Words that look alike: for who mistyped one.

/// How many letters have to be written, left out, replaced, or exchanged with their neighbour to make one word of the other.
pub(crate) fn distance(word: &str, other: &str) -> usize {
    let (word, other): (Vec<char>, Vec<char>) = (word.chars().collect(), other.chars().collect());
    let mut before = vec![0; other.len() + 1];
    let mut last: Vec<usize> = (0..=other.len()).collect();
    for (i, letter) in word.iter().enumerate() {
        let mut row = vec![i + 1; other.len() + 1];
        for (j, with) in other.iter().enumerate() {
            let replaced = last[j] + usize::from(letter != with);
            row[j + 1] = replaced.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *letter == other[j - 1] && word[i - 1] == *with {
                row[j + 1] = row[j + 1].min(before[j - 1] + 1);
            }
        }
        before = core::mem::replace(&mut last, row);
    }
    last[other.len()]
}

/// The known word that is nearest, where no more than a third of its letters and one differ; among equals the first in order.
pub(crate) fn nearest<'n>(word: &str, known: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let alike = known.into_iter().map(|name| (distance(word, name), name));
    alike.filter(|(distance, name)| *distance <= 1 + name.len().min(word.len()) / 3).min().map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_that_differ_are_counted() {
        let told: Vec<usize> =
            [("", "abc"), ("abc", "abc"), ("dytpe", "dtype"), ("rellu", "relu"), ("kitten", "sitting"), ("ä", "a")]
                .map(|(word, other)| distance(word, other))
                .to_vec();
        assert_eq!(told, [3, 0, 1, 1, 3, 1]);
        assert_eq!(nearest("elementwise_ad", ["sgemm", "elementwise_add"]), Some("elementwise_add"));
        assert_eq!(nearest("conv", ["sgemm", "elementwise_add"]), None);
    }
}
