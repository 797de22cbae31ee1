//! Times on the command line.

use std::str::FromStr;
use std::time::Duration;

/// How long ago.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Age(pub(crate) Duration);

impl FromStr for Age {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, Self::Err> {
        const HOUR: u64 = 3600;
        let (number, seconds) = match s.char_indices().next_back() {
            Some((at, 'h')) => (&s[..at], HOUR),
            Some((at, 'd')) => (&s[..at], 24 * HOUR),
            Some((at, 'w')) => (&s[..at], 7 * 24 * HOUR),
            _ => (s, 24 * HOUR),
        };
        let age = number.parse::<u32>().ok().map(|n| Age(Duration::from_secs(u64::from(n) * seconds)));
        age.ok_or_else(|| format!("found `{s}`, required days, or a number with h, d or w, for example 7d"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_units_or_say_which_there_are() {
        let hours = |text: &str| text.parse::<Age>().map(|age| age.0.as_secs() / 3600);
        assert_eq!(["7", "7d", "36h", "2w"].map(hours), [Ok(168), Ok(168), Ok(36), Ok(336)]);
        for wrong in ["", "d", "7m", "-1d", "7 d", "99999999999d"] {
            let said = format!("found `{wrong}`, required days, or a number with h, d or w, for example 7d");
            assert_eq!(hours(wrong), Err(said));
        }
    }
}
