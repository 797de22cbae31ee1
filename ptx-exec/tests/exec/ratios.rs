//! How much longer a launch takes in mode `races` than plain.

use ptx_exec::{Modes, Report};

use crate::bench::seconds;

const RACES: Modes = Modes { races: true, ..Modes::PLAIN };

/// Times of a launch: the shortest of a few rounds of a fifth of a second, so that what else the machine does is left out.
fn time(mut launch: impl FnMut() -> Report) -> f64 {
    let mut best = f64::MAX;
    for _ in 0..3 {
        let (start, mut runs) = (seconds(), 0);
        while runs == 0 || seconds() - start < 0.2 {
            let report = launch();
            assert!(report.is_clean(), "{report}");
            runs += 1;
        }
        best = best.min((seconds() - start) / f64::from(runs));
    }
    best
}

/// The texts that cost more than they may.
pub(crate) struct Ratios {
    most: f64,
    asked: String,
    over: Vec<String>,
}

impl Ratios {
    pub(crate) fn new(most: f64) -> Ratios {
        Ratios { most, asked: std::env::var("CUTEMPLATE_SPEED").unwrap_or_default(), over: Vec::new() }
    }

    pub(crate) fn of(&mut self, name: &str, mut launch: impl FnMut(Modes) -> Report) {
        if self.asks_for(name) {
            let [plain, races] = [Modes::PLAIN, RACES].map(|modes| time(|| launch(modes)));
            let line = format!("{name}: plain {:.3} ms, races {:.2} times", plain * 1e3, races / plain);
            println!("{line}");
            if races / plain > self.most {
                self.over.push(line);
            }
        }
    }

    pub(crate) fn asks_for(&self, name: &str) -> bool {
        name.contains(&self.asked)
    }

    pub(crate) fn judge(self) {
        assert!(self.over.is_empty(), "more than {} times:\n{}", self.most, self.over.join("\n"));
    }
}
