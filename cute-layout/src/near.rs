//! Similar words, for hints on misspelt ones.

/// The known word nearest to a misspelt one, if at most a third of its letters plus one differ. Among equals, the first.
pub(crate) fn nearest<'n>(word: &str, known: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let alike = known.into_iter().map(|name| (strsim::osa_distance(word, name), name));
    alike.filter(|(distance, name)| *distance <= 1 + name.len().min(word.len()) / 3).min().map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_one_that_looks_alike() {
        assert_eq!(nearest("setp", ["selp", "setp.eq", "set"]), Some("selp"));
        assert_eq!(nearest("gird", ["block", "grid"]), Some("grid"));
        assert_eq!(nearest("cluster", ["block", "grid"]), None);
    }
}
