//! The headers that a kernel's text begins with, compiled once for each mode: of a small text they are nine tenths of the time.
//!
//! GCC maps what it made of them into each compilation ("Precompiled Headers" of its manual); without it, or where it cannot, the
//! headers are read as ever.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::compile::{Compiler, part, write_files};
use super::program::Source;
use super::runtime::{CxxFile, SHIM};
use crate::build::dependencies;
use crate::emit::SourceFile;
use crate::exec::Error;
use crate::store::{Checked, Entry, Stage, Store, failed};

/// What is compiled: the shim, and the header that texts include.
const PREFIX: CxxFile = CxxFile { name: "prefix.h", text: "#include \"shim.h\"\n#include <cute/tensor.hpp>\n" };
const COMPILED: &str = "prefix.h.gch";
/// The headers that were read, as make lists them.
const READ: &str = "prefix.d";
const HEADER: &str = "<cute/tensor.hpp>";
/// How the macros of our own texts begin: the host side of a text reads them, and no header.
const OWN_MACROS: &str = "CUTEMPLATE_";

/// What this process has found whole, and its headers unchanged: all of it is read for that.
static COMPARED: Mutex<BTreeMap<PathBuf, Vec<Checked>>> = Mutex::new(BTreeMap::new());

impl Compiler<'_> {
    /// What a text is compiled with ahead of itself: the compiled headers, or the shim.
    pub(super) fn ahead(&self, source: Source<'_>, cache: &Path) -> Result<PathBuf, Error> {
        if !self.gnu() || begins_with_header(source.files, &format!("{}.cu", source.name)) != Some(true) {
            return Ok("shim.h".into());
        }
        let store = cache.join("runtime");
        let key = self.digest(vec![PREFIX.text.into(), COMPILED.into()]);
        let entry = store.join(&key);
        // Held for a moment only, so that the headers of two modes are compiled side by side.
        let compared = || COMPARED.lock().unwrap_or_else(PoisonError::into_inner);
        let known = compared().get(&entry).filter(|files| files.iter().all(|file| file.still().is_ok())).cloned();
        let files = match known {
            Some(files) => files,
            None => Store::at(store).find_or_make(&key, Entry::checked, |stage| self.headers(stage))?.0,
        };
        let ahead = part(&files, PREFIX.name)?.to_owned();
        compared().insert(entry, files);
        Ok(ahead)
    }

    fn headers(&self, stage: &Stage) -> Result<Vec<PathBuf>, Error> {
        let dir = stage.scratch.path();
        write_files(dir, SHIM)?;
        write_files(dir, &[PREFIX])?;
        let mut command = self.kernel_command(dir);
        command.args(["-x", "c++-header", PREFIX.name, "-o", COMPILED, "-MD", "-MF", READ]);
        self.finish(command)?;
        let read = dir.join(READ);
        let read = fs::read_to_string(&read).map_err(failed("read", &read))?;
        for name in [PREFIX.name, COMPILED] {
            let to = stage.dir.join(name);
            fs::rename(dir.join(name), &to).map_err(failed("write", &to))?;
        }
        // GCC does not look whether a header was changed since: the store does.
        Ok(dependencies(&read))
    }
}

/// Whether a file, with what it includes of its own, comes to the header before it defines anything that the header could see.
/// `None` where it comes to neither.
fn begins_with_header(files: &[SourceFile], name: &str) -> Option<bool> {
    let at = files.iter().position(|file| file.name == name)?;
    // Not itself again.
    let (file, others) = (&files[at], [&files[..at], &files[at + 1..]].concat());
    let directives = file.text.lines().filter_map(|line| line.trim_start().strip_prefix('#'));
    directives.map(str::trim).find_map(|line| match line.split_once(char::is_whitespace) {
        Some(("include", what)) if what.trim_start().starts_with(HEADER) => Some(true),
        Some(("include", what)) => begins_with_header(&others, what.trim().strip_prefix('"')?.split('"').next()?),
        Some(("define", what)) if what.trim_start().starts_with(OWN_MACROS) => None,
        Some(("pragma", _)) => None,
        _ => Some(false),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emit::render;
    use crate::recipe::{ElementwiseAdd, Recipe};

    #[test]
    fn texts_that_define_nothing_ahead_begin_with_the_header() {
        let unit = render(&ElementwiseAdd::default().plan_as("add", &Default::default()).expect("legal"));
        assert_eq!(begins_with_header(unit.files(), "add.cu"), Some(true));
        let begins = |text: &str, other: &str| {
            let files = [("k.cu", text), ("k.cuh", other)]
                .map(|(name, text)| SourceFile { name: name.into(), text: text.into() });
            begins_with_header(&files, "k.cu")
        };
        let header = "#pragma once\n#include <cute/tensor.hpp>\n";
        assert_eq!(begins(header, ""), Some(true));
        assert_eq!(begins("#include \"k.cuh\"\n", header), Some(true));
        assert_eq!(begins("#include <cuda_fp16.h>\n # include \"k.cuh\"\n#define A\n", header), Some(true));
        assert_eq!(begins(&format!("#define CUTE_A 1\n{header}"), ""), Some(false));
        assert_eq!(begins(&format!("#include \"k.cuh\"\n{header}"), "#define A\n"), Some(false));
        assert_eq!(begins(&format!("#ifndef A\n{header}"), ""), Some(false));
        assert_eq!(begins("int a;\n", header), None);
    }

    #[test]
    fn a_text_that_includes_itself_does_not_end_in_a_loop() {
        let files = [SourceFile { name: "k.cu".into(), text: "#include \"k.cu\"\n".into() }];
        assert_eq!(begins_with_header(&files, "k.cu"), None);
    }
}
