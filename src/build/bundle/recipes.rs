//! Files of recipes, one kernel a line, and whether a bundle is of them.

use core::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::contents::{Contents, KernelRow};
use crate::arch::{Arch, Targets};
use crate::diagnostic::{PlanError, debug_as_display};
use crate::recipe::{Family, family_of};
use crate::settings::Settings;

/// A file of recipes cannot be used.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum RecipesError {
    /// It cannot be read.
    #[error(
        "error[recipes]: cannot read {}\n  found:    {source}\n  required: a file with a kernel a line, as `cutemplate bundle --recipes` takes it\n  \
         help:     a path begins at the crate's folder", path.display()
    )]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A line is no recipe.
    #[error(
        "error[recipes]: {}:{line} is not a recipe\n  found:    {found}\n  required: name, family and settings: vector_add elementwise_add \
         dtype=f32; unroll=4\n  help:     `cutemplate list` has families and settings", path.display()
    )]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The line's text.
        found: String,
    },
    /// Settings of a line cannot be read.
    #[error(transparent)]
    Plan(#[from] PlanError),
}

debug_as_display!(RecipesError);

/// A line of a file of recipes.
pub(crate) struct Listed {
    pub(crate) name: String,
    pub(crate) family: Family,
    /// The settings that the line says.
    pub(crate) settings: Settings,
    /// All settings of the recipe.
    pub(crate) whole: Settings,
}

/// The kernels of a file: one a line, `name family key=value; key=value`. Lines that begin with `#` are remarks.
pub(crate) fn read_recipes(path: &Path, families: &[Family]) -> Result<Vec<Listed>, RecipesError> {
    let text = fs::read_to_string(path).map_err(|source| RecipesError::Read { path: path.to_owned(), source })?;
    let lines = (1..).zip(text.lines().map(str::trim)).filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    lines.map(|(number, line)| listed(families, path, number, line)).collect()
}

fn listed(families: &[Family], path: &Path, number: usize, line: &str) -> Result<Listed, RecipesError> {
    let bad = |found: String| RecipesError::Line { path: path.to_owned(), line: number, found };
    let (name, rest) = line.split_once(char::is_whitespace).ok_or_else(|| bad(format!("`{line}`")))?;
    let (word, rest) = rest.trim().split_once(char::is_whitespace).unwrap_or((rest.trim(), ""));
    let family = *family_of(families, word).map_err(|e| bad(e.to_string()))?;
    let settings = Settings::parse_lines(&lines(rest));
    let whole = family.complete(&settings)?;
    Ok(Listed { name: name.to_owned(), family, settings, whole })
}

/// A setting on each line. The names of a function have a `;` of their own between bars: `|a, b; alpha| ..`.
fn lines(settings: &str) -> String {
    let mut inside = false;
    let mut line = |letter: char| {
        inside ^= letter == '|';
        if letter == ';' && !inside { '\n' } else { letter }
    };
    settings.chars().map(&mut line).collect()
}

/// Where a bundle's kernel is not the one that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The kernel.
    pub kernel: String,
    /// What the bundle has: of the settings those that differ.
    pub found: String,
    /// What is asked for.
    pub required: String,
}

/// A bundle's kernels are not those of the recipes.
#[derive(Clone, PartialEq, Eq)]
pub struct StaleBundle {
    /// The bundle.
    pub path: PathBuf,
    /// Each kernel that differs.
    pub differences: Vec<Difference>,
    /// The command that makes it again.
    pub help: String,
}

impl fmt::Display for StaleBundle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error[bundle]: {} is not of this crate's recipes", self.path.display())?;
        for Difference { kernel, found, required } in &self.differences {
            write!(f, "\n  kernel `{kernel}`\n    found:    {found}\n    required: {required}")?;
        }
        write!(
            f,
            "\n  because:  what is asked for, and what is launched, would be two kernels\n  help:     `{}` makes it again, where nvcc is",
            self.help
        )
    }
}

impl core::error::Error for StaleBundle {}

debug_as_display!(StaleBundle);

/// Where a bundle differs from what is asked for: names, families with all settings where they are known, and architectures. Nothing
/// is planned.
pub(crate) fn differences<'a>(
    contents: &Contents,
    asked: impl Iterator<Item = (&'a str, Option<(&'a str, &'a Settings)>)>,
    archs: &[Arch],
) -> Vec<Difference> {
    let one = |(name, identity): (&'a str, Option<(&'a str, &'a Settings)>)| {
        let differs = |(found, required)| Difference { kernel: name.to_owned(), found, required };
        match (contents.kernel(name), identity) {
            (Some(kernel), identity) => identity
                .and_then(|identity| settings_differ(kernel, identity))
                .or_else(|| archs_differ(kernel, archs))
                .map(differs),
            (None, identity) => {
                let names: Vec<&str> = contents.kernels.iter().map(|kernel| kernel.name.as_str()).collect();
                let of =
                    identity.map_or("a kernel of that name".to_owned(), |(family, _)| format!("a kernel of {family}"));
                Some(differs((format!("no such kernel among {}", names.join(", ")), of)))
            }
        }
    };
    asked.filter_map(one).collect()
}

/// The kernels of a bundle that nothing asks for.
pub(crate) fn superfluous<'a>(contents: &Contents, asked: impl Iterator<Item = &'a str>) -> Vec<Difference> {
    let asked: Vec<&str> = asked.collect();
    let others = contents.kernels.iter().filter(|kernel| !asked.contains(&kernel.name.as_str()));
    let difference = |kernel: &KernelRow| Difference {
        kernel: kernel.name.clone(),
        found: format!("a kernel of {}", kernel.family),
        required: "no line of the recipes has that name".to_owned(),
    };
    others.map(difference).collect()
}

/// The settings that differ, as found and required.
fn settings_differ(kernel: &KernelRow, (family, required): (&str, &Settings)) -> Option<(String, String)> {
    if kernel.family != family {
        return Some((format!("a kernel of {}", kernel.family), format!("a kernel of {family}")));
    }
    // Both as text: that of a kernel's own declaration may have spaces at its ends, or several lines.
    let [found, required] = [kernel.settings.clone(), required.to_string()].map(|text| Settings::parse_lines(&text));
    let only = |of: &Settings, other: &Settings| {
        let differ = of.iter().filter(|(key, value)| other.get(key) != Some(*value));
        let differ: Vec<String> = differ.map(|(key, value)| format!("{key}={value}")).collect();
        if differ.is_empty() { "no more settings".to_owned() } else { differ.join("; ") }
    };
    (found != required).then(|| (only(&found, &required), only(&required, &found)))
}

fn archs_differ(kernel: &KernelRow, required: &[Arch]) -> Option<(String, String)> {
    let found: Vec<Arch> = kernel.texts.iter().flat_map(|text| text.targets.archs()).copied().collect();
    let missing = required.iter().find(|arch| !found.contains(arch))?;
    Some((format!("code for {}", Targets::new(found).unwrap_or_default()), format!("code for {missing} too")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A bundle keeps settings as text, in which nothing else than the kernel's author put spaces and ends of lines.
    #[test]
    fn a_kernel_is_its_own_whatever_its_declaration_has_at_its_ends() {
        let mut asked = Settings::new();
        asked.set("doc", " Scales. ").set("entry", "scale(x: f32 n:1) requires n > 0 ");
        asked.set("constant Tile", "using Tile = Shape<_1,\n  _2>; ").set("vouched", "no");
        let row = |settings: &Settings| KernelRow {
            name: "scale".to_owned(),
            family: "cuda".to_owned(),
            recipe: String::new(),
            settings: settings.to_string(),
            texts: Vec::new(),
        };
        assert_eq!(settings_differ(&row(&asked), ("cuda", &asked)), None);
        let mut other = asked.clone();
        other.set("vouched", "yes");
        let differs = ("vouched=no".to_owned(), "vouched=yes".to_owned());
        assert_eq!(settings_differ(&row(&asked), ("cuda", &other)), Some(differs));
    }
}
