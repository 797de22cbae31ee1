//! From return addresses to lines of the kernel's text, by addr2line, which comes with the linker.

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, Stdio};

use super::Program;
use crate::exec::finding::SourceLine;

/// For each address, the lines that it stands for: the innermost inlined call first.
#[derive(Debug, Default)]
pub(super) struct Symbols {
    lines: BTreeMap<u64, Vec<SourceLine>>,
    files: Vec<String>,
}

impl Symbols {
    /// Asks for all addresses at once. Where addr2line is missing, no line is known.
    pub(super) fn of(program: &Program, pcs: impl Iterator<Item = u64>) -> Symbols {
        let pcs: BTreeSet<u64> = pcs.filter(|&pc| pc != 0).collect();
        let mut symbols = Symbols { lines: BTreeMap::new(), files: program.files.clone() };
        if pcs.is_empty() {
            return symbols;
        }
        // LLVM's takes the same options and answers in the same form.
        for reader in ["addr2line", "llvm-addr2line"] {
            let mut command = Command::new(reader);
            command.args(["-i", "-a", "-e"]).arg(program.path());
            // A return address is behind the call: one less is within it.
            command.args(pcs.iter().map(|pc| format!("{:#x}", pc - 1)));
            command.stdin(Stdio::null()).stderr(Stdio::null()).env("LC_ALL", "C");
            if let Ok(output) = command.output() {
                symbols.read(&String::from_utf8_lossy(&output.stdout));
                break;
            }
        }
        symbols
    }

    fn read(&mut self, text: &str) {
        let mut pc = 0;
        for line in text.lines() {
            if let Some(address) = line.strip_prefix("0x") {
                pc = u64::from_str_radix(address, 16).map_or(0, |a| a + 1);
                continue;
            }
            let Some((path, number)) = line.rsplit_once(':') else { continue };
            // `12 (discriminator 3)`
            let number = number.split(' ').next().and_then(|n| n.parse().ok());
            let file = path.rsplit('/').next().unwrap_or(path).to_owned();
            // What is not known is `??:0` or `??:?`.
            if let Some(line) = number.filter(|&line| line > 0) {
                self.lines.entry(pc).or_default().push(SourceLine { file, line });
            }
        }
    }

    /// The innermost line that is in the kernel's own text, of a chain of return addresses; else the innermost.
    pub(super) fn line(&self, pcs: &[u64]) -> Option<SourceLine> {
        let mut lines = pcs.iter().filter_map(|pc| self.lines.get(pc)).flatten();
        let own = |line: &&SourceLine| self.files.contains(&line.file);
        lines.clone().find(own).or_else(|| lines.next()).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_own_line_wins_over_what_it_calls() {
        let mut symbols = Symbols { lines: BTreeMap::new(), files: vec!["gemm.cuh".into()] };
        symbols.read(
            "0x000000000040100f\n/x/cute/copy.hpp:80 (discriminator 2)\n./gemm.cuh:33\n0x401020\n??:0\n./gemm.cuh:?\n",
        );
        assert_eq!(symbols.line(&[0x401010]), Some(SourceLine { file: "gemm.cuh".into(), line: 33 }));
        assert_eq!(symbols.line(&[0x401021, 0x401010]), Some(SourceLine { file: "gemm.cuh".into(), line: 33 }));
        assert_eq!(symbols.line(&[0x5]), None);
    }
}
