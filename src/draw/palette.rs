//! The colours. Greys and pastels are those of CuTe's printers (`cute/util/print_latex.hpp`).

/// A colour, 8 bits each of red, green and blue.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Colour(pub(super) u8, pub(super) u8, pub(super) u8);

pub(super) const WHITE: Colour = Colour(255, 255, 255);

/// `black!00, 40, 20, 60, 10, 50, 30, 70` of LaTeX's xcolor: neighbours differ.
const GREYS: [u8; 8] = [255, 153, 204, 102, 230, 128, 179, 77];

const PASTELS: [Colour; 8] = [
    Colour(175, 175, 255),
    Colour(175, 255, 175),
    Colour(255, 255, 175),
    Colour(255, 175, 175),
    Colour(210, 210, 255),
    Colour(210, 255, 210),
    Colour(255, 255, 210),
    Colour(255, 210, 210),
];

/// A layout's cell, by its index modulo 8.
pub(super) fn grey(index: i64) -> Colour {
    let level = GREYS[index.rem_euclid(8) as usize];
    Colour(level, level, level)
}

/// A thread's cell, by its number modulo 8.
pub(super) fn pastel(thread: i64) -> Colour {
    PASTELS[thread.rem_euclid(8) as usize]
}

/// A shared memory bank's cell: 32 hues, every second one lighter, so that neighbours differ.
pub(super) fn bank(bank: i64) -> Colour {
    let bank = bank.rem_euclid(32);
    hue(bank * 1530 / 32, if bank % 2 == 0 { 120 } else { 40 })
}

/// A linked pair of cells: 12 hues, then 12 lighter ones.
pub(super) fn link(number: i64) -> Colour {
    let number = number.rem_euclid(24);
    // Steps of five hues: neighbours are far apart.
    hue(number * 5 % 12 * 1530 / 12, if number < 12 { 50 } else { 95 })
}

/// A hue on a wheel of 1530 steps, mixed with white of the given strength.
fn hue(step: i64, white: i64) -> Colour {
    let ramp = step % 255;
    let (r, g, b) = match step / 255 % 6 {
        0 => (255, ramp, 0),
        1 => (255 - ramp, 255, 0),
        2 => (0, 255, ramp),
        3 => (0, 255 - ramp, 255),
        4 => (ramp, 0, 255),
        _ => (255, 0, 255 - ramp),
    };
    // Half way to white at least: black text stays readable on every hue.
    let mix = |channel: i64| (channel + (255 - channel) * (100 + white) / 255).clamp(0, 255) as u8;
    Colour(mix(r), mix(g), mix(b))
}

impl Colour {
    /// `#rrggbb`.
    pub(super) fn hex(self) -> String {
        format!("#{:02x}{:02x}{:02x}", self.0, self.1, self.2)
    }

    /// Whether black text is hard to read on it (relative luminance of ITU-R BT.601 below one half).
    pub(super) fn is_dark(self) -> bool {
        299 * u32::from(self.0) + 587 * u32::from(self.1) + 114 * u32::from(self.2) < 127_500
    }
}
