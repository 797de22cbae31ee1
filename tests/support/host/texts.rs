//! Many texts in one translation unit for each mode: of a small kernel most of the time to compile goes into the headers, of a large one
//! into what CuTe makes of its types, which a kernel and its defects share.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use cutemplate::emit::SourceFile;
use cutemplate::exec::cxx::{Mode, Options, Program, Source};
use cutemplate::exec::{Buffer, Error, Executor, Job, Report};
use cutemplate::plan::EntryLaunch;

use super::{OPTIONS, Text};

/// Texts that are compiled together, and the modes that each is run in. Dynamic shared memory has the widest alignment that any
/// of them declares.
pub(crate) struct Texts {
    list: fn() -> Vec<(Text, &'static [Mode])>,
    compiled: [Compiled; Mode::ALL.len()],
}

/// What the texts are in one mode.
struct Compiled {
    begun: AtomicBool,
    program: OnceLock<Result<Program, String>>,
}

impl Texts {
    pub(crate) const fn new(list: fn() -> Vec<(Text, &'static [Mode])>) -> Texts {
        let compiled =
            [const { Compiled { begun: AtomicBool::new(false), program: OnceLock::new() } }; Mode::ALL.len()];
        Texts { list, compiled }
    }

    /// A text that is compiled with these, among which it has to be.
    pub(crate) fn text(&'static self, name: &'static str, text: &str) -> Text {
        Text { among: Some(self), ..super::text(name, text) }
    }

    fn of(&self, mode: Mode) -> Vec<Text> {
        (self.list)().into_iter().filter(|(_, modes)| modes.contains(&mode)).map(|(text, _)| text).collect()
    }

    /// The program of a mode, which one of the tests compiles. One that has to wait for it compiles another mode's meanwhile.
    fn program(&self, mode: Mode) -> &Result<Program, String> {
        let compile = |mode: Mode| {
            let program = || compile(&self.of(mode), mode, &OPTIONS).map_err(|error| error.to_string());
            self.compiled[mode as usize].program.get_or_init(program)
        };
        let begin = |mode: Mode| !self.compiled[mode as usize].begun.swap(true, Ordering::Relaxed);
        if !begin(mode) && self.compiled[mode as usize].program.get().is_none() {
            let other = Mode::ALL.iter().find(|other| !self.of(**other).is_empty() && begin(**other));
            other.map(|other| compile(*other));
        }
        compile(mode)
    }

    /// A text as a part of the program of all, with the options of all tests or with other ones.
    pub(super) fn part(&self, text: &Text, mode: Mode, options: Option<&Options>) -> Part {
        let program = match options {
            Some(options) => compile(&self.of(mode), mode, options).map_err(|error| error.to_string()),
            None => self.program(mode).clone(),
        };
        let texts = self.of(mode);
        let number = texts.iter().position(|one| (one.name, &one.text) == (text.name, &text.text));
        let number = number
            .unwrap_or_else(|| panic!("in mode {mode} not among the texts that are compiled together:\n{}", text.text));
        Part {
            program: program.unwrap_or_else(|error| panic!("{error}")),
            first: texts[..number].iter().map(|text| text.entries.len()).sum(),
            together: Some(Together { stem: stem(text, number), name: text.name, entries: text.entries.len() }),
        }
    }
}

/// The namespace of a text among others, and the stem of its file.
fn stem(text: &Text, number: usize) -> String {
    format!("{}_{number}", text.name)
}

/// Each text keeps its lines, in a file and a namespace of its own. The headers stand ahead of the namespaces, so that they are empty in
/// them; of names that are C's there would be one for all.
fn compile(texts: &[Text], mode: Mode, options: &Options) -> Result<Program, Error> {
    let (mut includes, mut batch) = (BTreeSet::new(), String::new());
    let (mut entries, mut files) = (Vec::new(), Vec::new());
    for (number, text) in texts.iter().enumerate() {
        let stem = stem(text, number);
        includes.extend(text.text.lines().map(str::trim).filter(|line| line.starts_with("#include <")));
        let _ = writeln!(batch, "namespace {stem} {{\n#include \"{stem}.cu\"\n}}");
        entries.extend(text.entries.iter().map(|entry| format!("{stem}::{entry}")));
        files.push(SourceFile { name: format!("{stem}.cu"), text: text.text.replace("extern \"C\" ", "") });
    }
    let includes: Vec<&str> = includes.into_iter().collect();
    files.push(SourceFile { name: "batch.cu".into(), text: format!("{}\n{batch}", includes.join("\n")) });
    Program::compile(Source { name: "batch", entries: &entries, files: &files }, mode, options)
}

/// A text in a program of its own or among others.
pub(crate) struct Part {
    program: Program,
    /// The number of the text's first entry in the program.
    first: usize,
    together: Option<Together>,
}

/// How a text among others is called, and how it would be called alone.
struct Together {
    stem: String,
    name: &'static str,
    entries: usize,
}

impl From<Program> for Part {
    fn from(program: Program) -> Part {
        Part { program, first: 0, together: None }
    }
}

impl Part {
    /// Runs a job whose entries are numbered as in the text, and reports as if the text were compiled alone.
    pub(crate) fn run(&self, job: &Job<'_>, buffers: &mut [Buffer<'_>]) -> Result<Report, Error> {
        let of_program = |launch: &EntryLaunch| EntryLaunch { entry: self.first + launch.entry, ..*launch };
        let launches: Vec<EntryLaunch> = job.launches.iter().map(of_program).collect();
        let mut report = self.program.run(&Job { launches: &launches, ..*job }, buffers)?;
        if let Some(together) = &self.together {
            together.name_as_alone(&mut report);
        }
        Ok(report)
    }
}

impl Together {
    fn name_as_alone(&self, report: &mut Report) {
        let file = format!("{}.cu", self.name);
        let renamed = |text: &mut String| {
            *text = text.replace(&format!("{}::", self.stem), "").replace(&format!("{}.cu", self.stem), &file);
        };
        for finding in &mut report.findings {
            finding.entry = finding.entry.take().filter(|_| self.entries > 1);
            finding.entry.iter_mut().for_each(renamed);
            renamed(&mut finding.detail);
            let other = finding.other.as_deref_mut().and_then(|other| other.site.as_mut());
            for line in finding.site.iter_mut().chain(other).flat_map(|site| &mut site.source) {
                renamed(&mut line.file);
                assert!(line.file == file || !line.file.ends_with(".cu"), "{line} is not of {file}, which was run");
            }
        }
        renamed(&mut report.printed);
    }
}
