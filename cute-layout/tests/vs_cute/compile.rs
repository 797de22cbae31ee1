//! Answers of compiled CuTe to many cases: batched translation units, two compilers at a time, and a cache.
//!
//! A batch has one case in each line, so that every error of the compiler belongs to the line that it was required from:
//! what CuTe refuses is found without spoiling the rest. The compiler reports a template that fails once, though several
//! cases may need it; those that are not named are compiled again, without the named ones, until a batch is clean.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

use cutlass_sys::{Family, Finder, HostToolchain};

use crate::cpp::{Case, PRELUDE, expression};

const BATCH: usize = 64;
const PRELUDE_FILE: &str = "prelude.h";
const COMPILERS: usize = 2;

/// What compiled CuTe says to a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The text that it prints, and the first values of a layout.
    Text { text: String, values: Vec<String> },
    /// What the compiler says: its static assertions that fail, or else its first error.
    Refused(String),
}

/// A C++ compiler with CUTLASS, and the answers that it has given.
pub(crate) struct Cute {
    toolchain: HostToolchain,
    dir: PathBuf,
    /// Of the compiler, the headers and the prelude: what depends on them is named by it.
    key: u64,
    /// Where the prelude lies as a header, with what the compiler made of it beside it.
    prelude: OnceLock<PathBuf>,
    known: Mutex<BTreeMap<String, Answer>>,
}

impl Cute {
    pub(crate) fn new() -> Cute {
        let toolchain = Finder::from_env().host_toolchain(&mut ()).expect("CUTLASS and a C++ compiler");
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("vs_cute");
        fs::create_dir_all(&dir).expect("a directory in target");
        let key = key(&toolchain);
        let cute = Cute { dir, key, prelude: OnceLock::new(), known: Mutex::default(), toolchain };
        *cute.known.lock().expect("one thread") = cute.read_cache().unwrap_or_default();
        cute
    }

    /// Answers, in the order of the cases. `refused` guesses what CuTe refuses: only time depends on it.
    pub(crate) fn answers(&self, cases: &[Case], refused: impl Fn(&Case) -> bool) -> Vec<Answer> {
        let mut wanted: Vec<(String, bool)> = Vec::new();
        {
            let known = self.known.lock().expect("not poisoned");
            for case in cases {
                let text = expression(case).unwrap_or_else(|| panic!("{case}: not in C++"));
                if !known.contains_key(&text) && !wanted.iter().any(|(other, _)| *other == text) {
                    wanted.push((text, refused(case)));
                }
            }
        }
        if !wanted.is_empty() {
            self.ask(wanted);
        }
        let known = self.known.lock().expect("not poisoned");
        cases.iter().map(|case| known[&expression(case).expect("as before")].clone()).collect()
    }

    /// The answer of a translation unit with this case alone: a refusal then has all its reasons, where a batch may report
    /// some of them for another case that fails in the same place.
    pub(crate) fn alone(&self, case: &Case) -> Answer {
        let text = expression(case).unwrap_or_else(|| panic!("{case}: not in C++"));
        let key = format!("alone {text}");
        if let Some(known) = self.known.lock().expect("not poisoned").get(&key) {
            return known.clone();
        }
        self.known.lock().expect("not poisoned").remove(&text);
        self.ask(vec![(text.clone(), false)]);
        let answer = self.known.lock().expect("not poisoned")[&text].clone();
        self.known.lock().expect("not poisoned").insert(key, answer.clone());
        self.write_cache();
        answer
    }

    /// Compiles until every case is answered.
    fn ask(&self, wanted: Vec<(String, bool)>) {
        let mut queue: VecDeque<(Vec<String>, bool)> = VecDeque::new();
        for refused in [false, true] {
            let texts: Vec<String> = wanted.iter().filter(|w| w.1 == refused).map(|w| w.0.clone()).collect();
            queue.extend(texts.chunks(BATCH).map(|chunk| (chunk.to_vec(), refused)));
        }
        while !queue.is_empty() {
            let round = Mutex::new(std::mem::take(&mut queue).into_iter().enumerate().collect::<VecDeque<_>>());
            let again = Mutex::new(BTreeMap::new());
            std::thread::scope(|scope| {
                for _ in 0..COMPILERS {
                    scope.spawn(|| {
                        loop {
                            let Some((number, (texts, refused))) = round.lock().expect("not poisoned").pop_front()
                            else {
                                break;
                            };
                            let left = self.batch(&texts, refused);
                            again.lock().expect("not poisoned").insert(number, (left, texts.len()));
                        }
                    });
                }
            });
            self.write_cache();
            for (_, (left, before)) in again.into_inner().expect("not poisoned") {
                // No error had a line of its own: halve the batch until it is one case.
                let size = if left.len() == before { before.div_ceil(2) } else { BATCH };
                queue.extend(left.chunks(size.max(1)).map(|chunk| (chunk.to_vec(), false)));
            }
        }
    }

    /// One translation unit; returns the cases that have no answer yet.
    fn batch(&self, texts: &[String], refused: bool) -> Vec<String> {
        // Two tests may ask at the same time, and each numbers its batches from 0.
        static BATCHES: AtomicUsize = AtomicUsize::new(0);
        let unique = BATCHES.fetch_add(1, Ordering::Relaxed);
        let source = self.dir.join(format!("batch_{}_{unique}.cpp", std::process::id()));
        let program = source.with_extension("bin");
        fs::write(&source, cases(texts)).expect("target can be written");
        let mut command = self.compiler();
        command.args(["-fno-diagnostics-show-caret", "-ftemplate-backtrace-limit=0"]);
        command.arg("-include").arg(self.prelude().join(PRELUDE_FILE)).arg(&source);
        if refused {
            command.arg("-fsyntax-only");
        } else {
            command.arg("-o").arg(&program);
        }
        let output = command.output().expect("the C++ compiler runs");
        let messages = String::from_utf8_lossy(&output.stderr);
        let mut found = BTreeMap::new();
        if output.status.success() {
            if !refused {
                let run = Command::new(&program).output().expect("it was just linked");
                assert!(run.status.success(), "a batch ends with {}", run.status);
                found = printed(&String::from_utf8_lossy(&run.stdout), texts);
            }
        } else {
            let file = source.file_name().expect("a file").to_string_lossy();
            let mut reasons: BTreeMap<&String, Vec<String>> = BTreeMap::new();
            for (line, message) in errors(&messages, &file) {
                if let Some(text) = line.checked_sub(1).and_then(|i| texts.get(i)) {
                    reasons.entry(text).or_default().push(message);
                }
            }
            found.extend(reasons.into_iter().map(|(text, why)| (text.clone(), Answer::Refused(reason(why)))));
            if let (true, [text]) = (found.is_empty() && !refused, texts) {
                let message = messages.lines().find(|l| l.contains("error:")).unwrap_or("no message");
                found.insert(text.clone(), Answer::Refused(message.to_owned()));
            }
        }
        let _ = fs::remove_file(&source);
        let _ = fs::remove_file(&program);
        let left = texts.iter().filter(|text| !found.contains_key(*text)).cloned().collect();
        self.known.lock().expect("not poisoned").extend(found);
        left
    }

    fn compiler(&self) -> Command {
        let mut command = Command::new(&self.toolchain.cxx.path);
        command.args(["-std=c++17", "-O0", "-w"]).env("LC_ALL", "C");
        for dir in [&self.toolchain.cutlass.include].into_iter().chain(&self.toolchain.cuda.include_dirs) {
            command.arg("-isystem").arg(dir);
        }
        command
    }

    /// Most of the time to compile a few cases goes into CuTe's headers, of which GCC makes a header that it maps: once, for all tests.
    fn prelude(&self) -> &Path {
        let folder = self.dir.join(format!("prelude_{:016x}", self.key));
        let make = || {
            if folder.is_dir() {
                return folder;
            }
            let stage = tempfile::tempdir_in(&self.dir).expect("target can be written");
            fs::write(stage.path().join(PRELUDE_FILE), PRELUDE).expect("target can be written");
            if self.toolchain.cxx.family == Family::Gnu {
                let mut command = self.compiler();
                command.current_dir(stage.path()).args(["-x", "c++-header", PRELUDE_FILE]);
                let output = command.output().expect("the C++ compiler runs");
                assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            }
            // Another process may have made the same meanwhile.
            let moved = fs::rename(stage.path(), &folder);
            assert!(moved.is_ok() || folder.is_dir(), "{moved:?}");
            folder
        };
        self.prelude.get_or_init(make)
    }

    fn cache(&self) -> PathBuf {
        self.dir.join(format!("answers_{:016x}.txt", self.key))
    }

    /// Three lines for each answer: the expression, the text or the message, the values.
    fn read_cache(&self) -> Option<BTreeMap<String, Answer>> {
        let text = fs::read_to_string(self.cache()).ok()?;
        let lines: Vec<&str> = text.lines().collect();
        let entry = |three: &[&str]| {
            let answer = match three[1].split_once(' ')? {
                ("refused", message) => Answer::Refused(message.to_owned()),
                (_, text) => Answer::Text { text: text.to_owned(), values: listed(three[2]) },
            };
            Some((three[0].to_owned(), answer))
        };
        lines.chunks_exact(3).map(entry).collect()
    }

    fn write_cache(&self) {
        let mut text = String::new();
        for (expression, answer) in self.known.lock().expect("not poisoned").iter() {
            let (answer, values) = match answer {
                Answer::Text { text, values } => (format!("text {text}"), values.join(" ")),
                Answer::Refused(message) => (format!("refused {message}"), String::new()),
            };
            text.push_str(&format!("{expression}\n{answer}\n{values}\n"));
        }
        let path = self.cache();
        let part = path.with_extension(format!("{}", std::process::id()));
        fs::write(&part, text).and_then(|()| fs::rename(&part, &path)).expect("target can be written");
    }

    /// A translation unit of one case, to be kept and looked at.
    pub(crate) fn reproducer(&self, case: &Case, because: &str) -> PathBuf {
        let path = self.dir.join(format!("{}.cpp", case.op));
        let comment: String = because.lines().map(|line| format!("// {line}\n")).collect();
        let text = expression(case).unwrap_or_default();
        fs::write(&path, format!("{comment}{PRELUDE}{}", cases(&[text]))).expect("target can be written");
        path
    }
}

fn key(toolchain: &HostToolchain) -> u64 {
    let mut hash = DefaultHasher::new();
    hash.write(format!("{:?}", toolchain.cxx).as_bytes());
    hash.write(PRELUDE.as_bytes());
    let mut dirs = vec![toolchain.cutlass.include.join("cute")];
    while let Some(dir) = dirs.pop() {
        let entries = fs::read_dir(&dir).expect("headers");
        let mut entries: Vec<PathBuf> = entries.map(|e| e.expect("headers").path()).collect();
        entries.sort();
        for path in entries {
            if path.is_dir() {
                dirs.push(path);
            } else {
                hash.write(&fs::read(&path).expect("a header"));
            }
        }
    }
    hash.finish()
}

/// Each case is a line of its own, a function, so that an error in one leaves the others alone.
fn cases(texts: &[String]) -> String {
    let mut source = String::new();
    for (i, text) in texts.iter().enumerate() {
        source.push_str(&format!("void case_{i}() {{ answer({i}, {text}); }}\n"));
    }
    source.push_str("int main() {\n");
    for i in 0..texts.len() {
        source.push_str(&format!("  case_{i}();\n"));
    }
    source.push_str("}\n");
    source
}

/// The lines that a batch printed.
fn printed(stdout: &str, texts: &[String]) -> BTreeMap<String, Answer> {
    let mut found = BTreeMap::new();
    for line in stdout.lines() {
        let Some((number, rest)) = line.strip_prefix("answer ").and_then(|rest| rest.split_once(' ')) else { continue };
        let Some(text) = number.parse::<usize>().ok().and_then(|i| texts.get(i)) else { continue };
        let (answer, values) = rest.split_once(" |").unwrap_or((rest, ""));
        let values = split_values(values.trim());
        found.insert(text.clone(), Answer::Text { text: plain(answer), values });
    }
    found
}

/// CuTe's text without spaces, without the mark of a compile-time integer, and with the value of a number of which CuTe
/// knows some bits only when it is run (`M0|(8&24)=8`).
pub(crate) fn plain(text: &str) -> String {
    let mut rest: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    while let Some((start, end)) = rest.find('M').and_then(|start| Some((start, start + rest[start..].find('=')?))) {
        rest.replace_range(start..=end, "");
    }
    let mut out = String::new();
    let mut chars = rest.chars().peekable();
    while let Some(c) = chars.next() {
        let marks = c == '_' && chars.peek().is_some_and(|next| next.is_ascii_digit() || *next == '-');
        if !marks {
            out.push(c);
        }
    }
    out
}

fn listed(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// Values are separated by commas, and may be tuples themselves.
fn split_values(text: &str) -> Vec<String> {
    let (mut values, mut depth, mut current) = (Vec::new(), 0, String::new());
    for c in plain(text).chars() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                values.push(std::mem::take(&mut current));
                continue;
            }
            _ => {}
        }
        current.push(c);
    }
    if !current.is_empty() {
        values.push(current);
    }
    values
}

/// One line for the errors of a case. Most operations assert more than one thing of more than one mode.
fn reason(messages: Vec<String>) -> String {
    const ASSERTS: &str = "static assertion failed: ";
    let mut asserted: Vec<&str> = messages.iter().filter_map(|message| message.strip_prefix(ASSERTS)).collect();
    asserted.sort_unstable();
    asserted.dedup();
    if asserted.is_empty() { messages.into_iter().next().unwrap_or_default() } else { asserted.join("; ") }
}

/// The errors of g++, each with the line of `file` that it was required from.
fn errors(messages: &str, file: &str) -> Vec<(usize, String)> {
    let line_of = |text: &str| -> Option<usize> {
        let rest = &text[text.find(file)? + file.len()..];
        rest.strip_prefix(':')?.split(':').next()?.parse().ok()
    };
    let mut found = Vec::new();
    let mut context = None;
    for message in messages.lines() {
        if message.contains(": In ") && !message.contains("error:") {
            context = None;
        }
        if message.contains("required from") {
            context = line_of(message).or(context);
        }
        if let Some((_, text)) = message.split_once("error: ")
            && let Some(line) = line_of(message).or(context)
        {
            found.push((line, text.to_owned()));
        }
    }
    found
}
