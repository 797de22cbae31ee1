//! What was measured: for problems of a device, the fastest recipe among candidates.

use core::fmt;
use core::str::FromStr;

use super::Sgemm;
use crate::recipe::Recipe;
use crate::recipe::product::Problem;
use crate::settings::Settings;

/// The fastest recipe for a problem, with its rate then.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The problem.
    pub problem: Problem,
    /// The recipe.
    pub recipe: Sgemm,
    /// Its rate, in 10^12 operations a second.
    pub tflop_per_s: f64,
    /// Its rate divided by that of cuBLAS in the same run.
    pub ratio: f64,
}

/// What was measured on one kind of device.
///
/// ```
/// use cutemplate::recipe::product::Problem;
/// use cutemplate::recipe::sgemm::Record;
///
/// let h200 = Record::h200();
/// let found = h200.nearest(&Problem::rows(4000, 4096, 4096)).expect("aligned problems with rows were measured");
/// assert_eq!(found.problem, Problem::rows(4096, 4096, 4096));
/// // The text is what `cutemplate tune --record` writes.
/// assert_eq!(h200.to_string().parse(), Ok(h200));
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Record {
    /// The name of the device.
    pub device: String,
    /// A row for each problem.
    pub rows: Vec<Measured>,
}

impl Record {
    /// What was measured on an NVIDIA H200, with nvcc 13.0.
    pub fn h200() -> Self {
        match include_str!("h200.txt").parse() {
            Ok(record) => record,
            Err(defect) => unreachable!("the record of the H200 is one: {defect}"),
        }
    }

    /// The row of the most similar problem; among equals the first.
    pub fn nearest(&self, problem: &Problem) -> Option<&Measured> {
        let problems: Vec<Problem> = self.rows.iter().map(|row| row.problem).collect();
        self.rows.get(problem.nearest(&problems)?)
    }
}

impl fmt::Display for Record {
    /// A line for the device and one for each problem: `512x512x512 row row | tile=32x64x32; .. | 23.38 1.123`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.device)?;
        for row in &self.rows {
            let usual = Sgemm::rung(row.recipe.variant).settings();
            let settings = row.recipe.settings();
            let told = settings.iter().filter(|(key, value)| *key == "variant" || usual.get(key) != Some(value));
            let told: Vec<String> = told.map(|(key, value)| format!("{key}={value}")).collect();
            writeln!(f, "{} | {} | {:.2} {:.4}", row.problem, told.join("; "), row.tflop_per_s, row.ratio)?;
        }
        Ok(())
    }
}

impl FromStr for Record {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let device = lines.next().ok_or("a record begins with the name of a device")?.to_owned();
        Ok(Self { device, rows: lines.map(row).collect::<Result<_, _>>()? })
    }
}

fn row(line: &str) -> Result<Measured, String> {
    let parts: Vec<&str> = line.split(" | ").collect();
    let &[problem, settings, rates] = parts.as_slice() else {
        return Err(format!("`{line}` has no three parts with ` | ` between them"));
    };
    let rates: Vec<f64> = rates.split_whitespace().filter_map(|rate| rate.parse().ok()).collect();
    let &[tflop_per_s, ratio] = rates.as_slice() else {
        return Err(format!("`{line}` does not end in a rate and a ratio"));
    };
    let recipe = Sgemm::from_settings(&Settings::parse_lines(&settings.replace("; ", "\n")));
    Ok(Measured { problem: problem.parse()?, recipe: recipe.map_err(|e| e.to_string())?, tflop_per_s, ratio })
}
