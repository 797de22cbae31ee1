//! Requests over names, drawn for every operation of the line protocol.

use cute_layout::algebra_tool::Op;

use super::NAMES;
use crate::random::Random;

const SMALL: &[i64] = &[1, 2, 2, 3, 4, 4, 6, 8, 8, 16];
const DIVISORS: &[i64] = &[1, 1, 1, 2, 4, 8, 8, 3, 6, 16];

/// Draws requests over names of fixed divisors.
pub(super) struct Draw {
    pub(super) random: Random,
    pub(super) divisors: [i64; 4],
    /// The profile of the last layout: the extents of its modes, as text.
    pub(super) last: Vec<Vec<String>>,
}

impl Draw {
    fn name(&mut self) -> String {
        let i = self.random.below(NAMES.len());
        match self.divisors[i] {
            1 => NAMES[i].to_owned(),
            by => format!("{}{{div={by}}}", NAMES[i]),
        }
    }

    /// A product with at least one name.
    fn symbol(&mut self) -> String {
        let (factor, by) = (self.random.number(SMALL), self.random.number(&[2, 3, 4, 8, 8, 16, 128]));
        match self.random.below(12) {
            0..=5 => self.name(),
            6 | 7 => format!("{}*{}", factor.max(2), self.name()),
            8 => format!("{}*{}", self.name(), self.name()),
            9 if self.random.once_in(3) => format!("ceil_div({},{})", self.name(), self.name()),
            9 => format!("ceil_div({},{by})", self.name()),
            10 => format!("{}*ceil_div({}*{},{by})", factor.max(2), factor.max(2), self.name()),
            _ => format!("{}*ceil_div({},{by})", self.name(), self.name()),
        }
    }

    fn extent(&mut self) -> String {
        if self.random.below(5) < 2 { self.symbol() } else { self.random.number(SMALL).to_string() }
    }

    fn stride(&mut self) -> String {
        match self.random.below(16) {
            0 | 1 => "0".to_owned(),
            2 => format!("-{}", self.random.number(SMALL)),
            3 => self.random.pick(&["1@0", "1@1", "2@1", "-2*M", "0*N", "7", "5", "100"]).to_owned(),
            4..=8 => self.symbol(),
            _ => (self.random.number(SMALL) * self.random.number(SMALL)).to_string(),
        }
    }

    /// One to three modes, each a leaf or a pair.
    fn modes(&mut self) -> Vec<Vec<String>> {
        let rank = self.random.number(&[1, 1, 2, 2, 2, 3]);
        (0..rank).map(|_| (0..if self.random.once_in(5) { 2 } else { 1 }).map(|_| self.extent()).collect()).collect()
    }

    fn shape(&mut self) -> String {
        self.last = self.modes();
        written(&self.last)
    }

    fn layout(&mut self) -> String {
        let modes = self.modes();
        let flat: Vec<&String> = modes.iter().flatten().collect();
        let mut strides: Vec<String> = Vec::new();
        match self.random.below(4) {
            0 => strides = flat.iter().map(|_| self.stride()).collect(),
            kind => {
                // Compact in some order, perhaps with a leading dimension of its own.
                let mut order: Vec<usize> = (0..flat.len()).collect();
                if kind == 2 {
                    order.reverse();
                } else if kind == 3 && self.random.once_in(2) {
                    let (i, j) = (self.random.below(order.len()), self.random.below(order.len()));
                    order.swap(i, j);
                }
                strides.resize(flat.len(), String::new());
                let mut next = if self.random.once_in(6) { self.extent() } else { "1".to_owned() };
                for i in order {
                    strides[i] = next.clone();
                    next = product(&next, flat[i]);
                    if self.random.once_in(8) {
                        next = self.symbol();
                    } else if self.random.once_in(8) {
                        next = product(&next, &self.random.number(SMALL).to_string());
                    }
                    if self.random.once_in(12) {
                        strides[i] = "0".to_owned();
                    }
                }
            }
        }
        let mut strides = strides.into_iter();
        let stride: Vec<Vec<String>> =
            modes.iter().map(|mode| mode.iter().map(|_| strides.next().unwrap_or_default()).collect()).collect();
        let text = format!("{}:{}", written(&modes), written(&stride));
        self.last = modes;
        text
    }

    /// A layout, sometimes behind a swizzle.
    fn any(&mut self) -> String {
        let layout = self.layout();
        if self.random.once_in(14) {
            let (bits, base) = (self.random.below(3), self.random.below(3));
            return format!("Sw<{bits},{base},{}> o {} o {layout}", bits + 1, 4 * self.random.below(2));
        }
        layout
    }

    fn tiler(&mut self) -> String {
        match self.random.below(6) {
            0 => self.layout(),
            1 => self.extent(),
            2 => self.random.number(SMALL).to_string(),
            3 => {
                let entries: Vec<String> =
                    (0..self.last.len()).map(|_| self.random.number(SMALL).to_string()).collect();
                if entries.len() == 1 { entries[0].clone() } else { format!("({})", entries.join(",")) }
            }
            4 => {
                let entries: Vec<String> = (0..self.last.len())
                    .map(|_| if self.random.once_in(4) { "_".to_owned() } else { self.extent() })
                    .collect();
                format!("[{}]", entries.join(","))
            }
            _ => format!("{}:{}", self.extent(), self.random.number(&[1, 1, 1, 2, 4])),
        }
    }

    /// A coordinate of the last layout.
    fn coordinate(&mut self, open: bool) -> String {
        if self.random.once_in(4) && !open {
            return self.random.below(9).to_string();
        }
        let leaf = |draw: &mut Draw| {
            if open && draw.random.once_in(2) {
                "_".to_owned()
            } else {
                draw.random.number(&[0, 0, 1, 1, 2, 3, 5]).to_string()
            }
        };
        let modes: Vec<String> = (0..self.last.len())
            .map(|i| {
                let leaves = self.last[i].len();
                if leaves == 1 || self.random.once_in(3) {
                    return leaf(self);
                }
                let leaves: Vec<String> = (0..leaves).map(|_| leaf(self)).collect();
                format!("({})", leaves.join(","))
            })
            .collect();
        if modes.len() == 1 { modes[0].clone() } else { format!("({})", modes.join(",")) }
    }

    /// An argument, by what the operation's usage says of it.
    fn argument(&mut self, op: &str, usage: &str) -> String {
        let alternatives: Vec<&str> = usage.split(" or ").collect();
        let wanted = alternatives[self.random.below(alternatives.len())];
        match wanted {
            _ if wanted.contains("coord") && wanted.contains("static") => "static coord".to_owned(),
            _ if wanted.contains("coord") && wanted.contains("dynamic") => "dynamic coord".to_owned(),
            _ if wanted.contains("coordinate") => {
                let open = matches!(op, "slice" | "dice" | "slice_and_offset");
                self.coordinate(open)
            }
            _ if wanted.contains("layout") => self.any(),
            _ if wanted.contains("swizzle") => format!("Sw<{},0,2>", self.random.below(3)),
            _ if wanted.contains("tiler") => self.tiler(),
            _ if wanted.contains("shape") => self.shape(),
            _ if wanted.contains("mask") => format!("0b{:b}", self.random.below(32)),
            _ if wanted.contains("profile") => {
                let modes: Vec<Vec<String>> = self
                    .last
                    .iter()
                    .map(|mode| mode.iter().map(|_| self.random.below(2).to_string()).collect())
                    .collect();
                written(&modes)
            }
            _ if wanted.contains("order") => {
                let modes: Vec<Vec<String>> =
                    self.last.iter().map(|_| vec![self.random.below(4).to_string()]).collect();
                written(&modes)
            }
            _ if wanted.contains("bits") => self.random.number(&[4, 8, 16, 32]).to_string(),
            _ if wanted.contains("index")
                || wanted.contains("begin")
                || wanted.contains("end")
                || wanted.contains("rank") =>
            {
                self.random.below(4).to_string()
            }
            _ if wanted.contains("integer") || wanted.contains("size") => self.extent(),
            _ => self.random.number(&[1, 2, 4, 8, 3]).to_string(),
        }
    }

    pub(super) fn request(&mut self, op: &Op) -> Vec<String> {
        self.divisors = [0; 4].map(|_| self.random.number(DIVISORS));
        let usage = op.usage.replace(" [", "").replace(']', "");
        let kinds: Vec<&str> = usage.split(", ").collect();
        let many = op.least + self.random.below((op.most - op.least).min(3) + 1);
        // What a coordinate, a profile or a second layout belongs to is drawn first.
        let belongs = matches!(op.name, "crd2idx" | "idx2crd");
        let mut inputs: Vec<String> = (0..many)
            .map(|i| self.argument(op.name, kinds[if belongs { many - 1 - i } else { i.min(kinds.len() - 1) }]))
            .collect();
        if belongs {
            inputs.reverse();
        }
        inputs
    }
}

fn written(modes: &[Vec<String>]) -> String {
    let modes: Vec<String> = modes
        .iter()
        .map(|mode| if mode.len() == 1 { mode[0].clone() } else { format!("({})", mode.join(",")) })
        .collect();
    if modes.len() == 1 { modes[0].clone() } else { format!("({})", modes.join(",")) }
}

/// The text of a product: the integers in front.
fn product(a: &str, b: &str) -> String {
    let split = |text: &str| -> (i64, String) {
        let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
        if digits.is_empty() {
            return (1, text.to_owned());
        }
        (digits.parse().expect("a small number"), text[digits.len()..].trim_start_matches('*').to_owned())
    };
    let ((x, a), (y, b)) = (split(a), split(b));
    let names = [a, b].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("*");
    match (x * y, names.is_empty()) {
        (n, true) => n.to_string(),
        (1, false) => names,
        (n, false) => format!("{n}*{names}"),
    }
}
