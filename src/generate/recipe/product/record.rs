//! Measurements of a device: for each problem, the fastest recipe of a family among candidates.

use core::fmt;
use core::str::FromStr;

use super::Problem;
use crate::arch::Arch;
use crate::recipe::{Family, family};
use crate::settings::Settings;

/// The fastest recipe for a problem, with its rate then.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The problem.
    pub problem: Problem,
    /// All settings of the recipe.
    pub settings: Settings,
    /// Its rate, in 10^12 operations a second.
    pub tflop_per_s: f64,
    /// Its rate divided by the library's in the same run.
    pub ratio: f64,
}

/// Measurements of one family on one kind of device.
///
/// ```
/// use cutemplate::recipe::{Recipe, Sgemm};
/// use cutemplate::recipe::product::Problem;
///
/// let h200 = Sgemm::record().expect("it was measured on an H200");
/// let found = h200.nearest(&Problem::rows(4000, 4096, 4096)).expect("aligned problems with rows were measured");
/// assert_eq!(found.problem, Problem::rows(4096, 4096, 4096));
/// // The text is what `cutemplate tune --record` writes.
/// assert_eq!(h200.to_string().parse(), Ok(h200));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    family: Family,
    /// The name of the device.
    pub device: String,
    /// For which architecture recipes were chosen there: on others they are not taken. `None` where nothing says.
    pub arch: Option<Arch>,
    /// A row for each problem.
    pub rows: Vec<Measured>,
}

impl Record {
    /// Nothing measured yet.
    pub fn new(family: &Family, device: &str) -> Self {
        Self { family: *family, device: device.to_owned(), arch: None, rows: Vec::new() }
    }

    /// The family of these recipes.
    pub fn family(&self) -> &Family {
        &self.family
    }

    /// Reads a record of this family: of one that another crate brings. [`FromStr`] finds the families of this crate.
    ///
    /// # Errors
    /// The text is no record, or one of another family.
    pub fn of(family: &Family, text: &str) -> Result<Self, String> {
        let (name, mut lines) = named(text)?;
        if name != family.name {
            return Err(format!("found a record of `{name}`, required one of `{}`", family.name));
        }
        let device = lines.next().ok_or("behind the family, a record has the name of a device")?;
        let (device, arch) = match device.split_once(" | ") {
            Some((device, arch)) => (device, Some(arch.parse().map_err(|e| format!("`{device}`: {e}"))?)),
            None => (device, None),
        };
        let rows = lines.map(|line| row(family, line)).collect::<Result<_, _>>()?;
        Ok(Self { arch, rows, ..Self::new(family, device) })
    }

    /// The same with some of its rows.
    pub(crate) fn only(&self, wanted: impl Fn(&Measured) -> bool) -> Self {
        let rows = self.rows.iter().filter(|row| wanted(row)).cloned().collect();
        Self { device: self.device.clone(), rows, ..*self }
    }

    /// The row of the most similar problem; among equals the first.
    pub fn nearest(&self, problem: &Problem) -> Option<&Measured> {
        nearest(self.rows.iter().collect(), problem)
    }

    /// The same of those of which no extent differs by more than a factor of 2.
    pub fn alike(&self, problem: &Problem) -> Option<&Measured> {
        let near = |x: u64, y: u64| x <= y.saturating_mul(2) && y <= x.saturating_mul(2);
        let alike = |p: &Problem| near(p.m, problem.m) && near(p.n, problem.n) && near(p.k, problem.k);
        nearest(self.rows.iter().filter(|row| alike(&row.problem)).collect(), problem)
    }
}

fn nearest<'r>(rows: Vec<&'r Measured>, problem: &Problem) -> Option<&'r Measured> {
    let problems: Vec<Problem> = rows.iter().map(|row| row.problem).collect();
    rows.get(problem.nearest(&problems)?).copied()
}

impl fmt::Display for Record {
    /// A line for the family, one for the device, with the architecture behind ` | ` where it is known, and one for each problem: `512x512x512 row row | tile=32x64x32; .. | 23.38 1.123`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let arch = self.arch.map_or(String::new(), |arch| format!(" | {arch}"));
        writeln!(f, "{}\n{}{arch}", self.family.name, self.device)?;
        for row in &self.rows {
            let told = self.family.brief(&row.settings).to_string().replace('\n', "; ");
            writeln!(f, "{} | {told} | {:.2} {:.4}", row.problem, row.tflop_per_s, row.ratio)?;
        }
        Ok(())
    }
}

impl FromStr for Record {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, _) = named(text)?;
        Self::of(family(name).map_err(|unknown| unknown.to_string())?, text)
    }
}

/// The family's name, and the lines behind it.
fn named(text: &str) -> Result<(&str, impl Iterator<Item = &str>), String> {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let name = lines.next().ok_or("a record begins with the name of a kernel family")?;
    Ok((name, lines))
}

fn row(family: &Family, line: &str) -> Result<Measured, String> {
    let parts: Vec<&str> = line.split(" | ").collect();
    let &[problem, settings, rates] = parts.as_slice() else {
        return Err(format!("`{line}` has no three parts with ` | ` between them"));
    };
    let rates: Vec<f64> = rates.split_whitespace().filter_map(|rate| rate.parse().ok()).collect();
    let &[tflop_per_s, ratio] = rates.as_slice() else {
        return Err(format!("`{line}` does not end in a rate and a ratio"));
    };
    let settings = family.complete(&Settings::parse_lines(&settings.replace(';', "\n"))).map_err(|e| e.to_string())?;
    Ok(Measured { problem: problem.parse()?, settings, tflop_per_s, ratio })
}
