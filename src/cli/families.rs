//! The families that a command line knows: ours, and those of the program that it is built into.

use clap::{Command, CommandFactory};
use cutemplate::build::Config;
use cutemplate::recipe::{FAMILIES, Family, UnknownFamily, family_of};

use crate::cli::args::Cli;
use crate::cli::output::Failure;

/// What `bench` shows of products.
const BENCH: &str = "
  cutemplate bench gemm --graph --rest 0.1 --fill small --problem 4096x4096x4096
  cutemplate bench gemm --graph --rest 0.1 --sustained 3 --problem 8192x8192x8192
  cutemplate bench gemm --graph --ceilings --problem 8192x8192x128 --chart ratios.svg
  cutemplate bench gemm --graph --random 200 --seed 1 --spread log
  cutemplate bench gemm --graph --random 200 --seed 1

--fit times one wave of tiles and four at several K, and solves t = L + T * (a * K + E) for the T tiles of a CTA: L is the launch and
the fill of the pipeline, E the part of a tile's epilogue in which its CTA does not multiply.";

/// Commands whose examples the families bring.
const SHOWN: [&str; 5] = ["check", "emit", "run", "bench", "tune"];

/// The name that our texts give the program.
const OURS: &str = "cutemplate ";

/// Families by name.
#[derive(Debug)]
pub(crate) struct Families(Vec<Family>);

impl Families {
    /// Ours and these.
    pub(crate) fn with(own: &[Family]) -> Result<Self, Failure> {
        let mut all = FAMILIES.to_vec();
        for family in own {
            if all.contains(family) {
                return Err(Failure::message(format_args!(
                    "error[families]: two kernel families are called `{}`\n  found:    one name twice\n  required: one name for each family \
                     of this program\n  because:  arguments choose a family by its name\n  help:     change Recipe::FAMILY of one",
                    family.name
                )));
            }
            all.push(*family);
        }
        Ok(Self(all))
    }

    /// The family of that name.
    pub(crate) fn find(&self, name: &str) -> Result<&Family, UnknownFamily> {
        family_of(&self.0, name)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Family> {
        self.0.iter()
    }

    /// The command line, with the examples of the families, for a program of this name.
    pub(crate) fn command(&self, program: &str) -> Command {
        let command = SHOWN.iter().fold(Cli::command(), |all, name| {
            let examples = self.examples(name);
            all.mut_subcommand(*name, |command| command.after_help(examples))
        });
        let names: Vec<String> = command.get_subcommands().map(|command| command.get_name().to_owned()).collect();
        let own = format!("{program} ");
        names.iter().fold(command, |all, name| {
            all.mut_subcommand(name, |command| match command.get_after_help().map(ToString::to_string) {
                Some(help) => command.after_help(help.replace(OURS, &own)),
                None => command,
            })
        })
    }

    /// A build's configuration that knows these families.
    pub(crate) fn config(&self) -> Config {
        self.0.iter().fold(Config::new(), |config, family| config.family(*family))
    }

    /// A command's examples from all families.
    fn examples(&self, command: &str) -> String {
        let of = |family: &Family| {
            let own = family.examples.iter().filter(|(shows, _)| *shows == command);
            let line =
                |arguments: &str| format!("\n  {}", format!("{OURS}{command} {} {arguments}", family.name).trim_end());
            own.map(|(_, arguments)| line(arguments)).collect::<String>()
        };
        let lines: String = self.0.iter().map(of).collect();
        let lines = if lines.is_empty() { lines } else { format!("Examples:{lines}") };
        if command == "bench" { lines + BENCH } else { lines }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutemplate::recipe::Sum;

    #[test]
    fn two_families_with_one_name_are_refused() {
        let Err(Failure::Message(told)) = Families::with(&[Family::of::<Sum>()]) else { panic!("`sum` is known") };
        assert!(
            told.starts_with("error[families]: two kernel families are called `sum`\n  found:    one name twice"),
            "{told}"
        );
    }

    #[test]
    fn examples_name_the_program() {
        let help = |program| {
            let mut command = Families::with(&[]).expect("no name twice").command(program);
            let bench = command.find_subcommand_mut("bench").expect("there is one");
            bench.get_after_help().expect("examples").to_string()
        };
        assert!(help("cutemplate").contains("\n  cutemplate bench gemm --graph --rest"));
        assert_eq!(help("mine"), help("cutemplate").replace("cutemplate bench", "mine bench"));
    }
}
