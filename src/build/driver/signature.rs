//! Entries of one's own in the PTX that nvcc made: what they are is compared with what they are declared to be.

use std::fmt;

use super::listing::{ListedEntry, ListedParam};
use super::ptx_whole::{Word, words};
use crate::cuda::{Compiled, CompiledParam, Mismatch, compare};
use crate::diagnostic::debug_as_display;
use crate::plan::own::{Own, OwnEntry};

/// An entry is not what it is declared to be.
#[derive(Clone, PartialEq, Eq)]
pub struct SignatureError {
    /// The kernel.
    pub kernel: String,
    /// The function, as its declaration names it.
    pub function: String,
    /// The file of the text.
    pub file: String,
    /// Parameters side by side: declared, compiled, and a remark where they differ. Empty where they agree.
    pub params: Vec<[String; 3]>,
    /// What else differs: declared, compiled.
    pub others: Vec<(String, String)>,
}

debug_as_display!(SignatureError);

impl fmt::Display for SignatureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "error[signature]: `{}` is not what kernel `{}` is declared to be", self.function, self.kernel)?;
        writeln!(f, "  at:       {}", self.file)?;
        if !self.params.is_empty() {
            let heads = ["declared", "compiled", ""].map(str::to_owned);
            let width = |column: usize| {
                let cells = self.params.iter().chain([&heads]).map(|row| row[column].chars().count());
                cells.max().unwrap_or(0)
            };
            let widths = [width(0), width(1)];
            let mut row = |label: &str, [a, b, c]: &[String; 3]| {
                let line = format!("  {label:9} {a:0$}  {b:1$}  {c}", widths[0], widths[1]);
                writeln!(f, "{}", line.trim_end())
            };
            row("", &heads)?;
            for (number, cells) in (1..).zip(&self.params) {
                let remark = if cells[2].is_empty() { String::new() } else { format!("<- {}", cells[2]) };
                row(&format!("{number}"), &[cells[0].clone(), cells[1].clone(), remark])?;
            }
        }
        for (declared, compiled) in &self.others {
            writeln!(f, "  declared: {declared}")?;
            writeln!(f, "  compiled: {compiled}")?;
        }
        writeln!(
            f,
            "  because:  a launch would pass other bytes than the function reads, or run it with another block or memory"
        )?;
        write!(f, "  help:     change the declaration in build.rs, or the function")
    }
}

impl std::error::Error for SignatureError {}

/// Whether a line of PTX is one that tells what an entry is.
fn tells(line: &str) -> bool {
    line.starts_with(".global") && line.contains(" cutemplate_")
        || line.starts_with(".visible .global") && line.contains(" cutemplate_")
}

/// The PTX of a text of one's own as it is kept: without the variables that tell what entries are, and with the names that these are
/// declared by.
///
/// # Errors
/// `Err(Ok(..))`: entries are not what they are declared to be; `Err(Err(..))`: the PTX does not tell.
pub(super) fn checked(own: &Own, ptx: &str) -> Result<String, Result<Vec<SignatureError>, String>> {
    let told = Told::of(ptx);
    let (mut failed, mut seen): (Vec<SignatureError>, Vec<(String, &str)>) = (Vec::new(), Vec::new());
    let mut kept: String = ptx.split_inclusive('\n').filter(|line| !tells(line)).collect();
    for (number, entry) in own.entries().iter().enumerate() {
        let symbol =
            told.symbol(number).ok_or_else(|| Err(format!("it does not tell what `{}` is", entry.function)))?;
        let compiled = told.entry(number, entry, &symbol, ptx).map_err(Err)?;
        let mut mismatch = compare(entry, &compiled);
        if let Some((_, other)) = seen.iter().find(|(known, _)| *known == symbol).filter(|_| mismatch.is_none()) {
            let others = vec![("a function of its own".to_owned(), format!("the function of kernel `{other}`"))];
            mismatch = Some(Mismatch { table: Vec::new(), others });
        }
        if let Some(Mismatch { table, others }) = mismatch {
            let (kernel, function) = (entry.name.clone(), entry.function.clone());
            failed.push(SignatureError { kernel, function, file: own.place(), params: table, others });
            continue;
        }
        seen.push((symbol.clone(), &entry.name));
        if symbol != entry.name {
            kept = renamed(&kept, &symbol, &entry.name).map_err(Err)?;
        }
    }
    if failed.is_empty() { Ok(kept) } else { Err(Ok(failed)) }
}

/// The variables that tell what entries are.
struct Told<'p> {
    lines: Vec<(&'p str, &'p str)>,
}

impl<'p> Told<'p> {
    fn of(ptx: &'p str) -> Self {
        let named = |line: &'p str| {
            let at = line.find(" cutemplate_")? + 1;
            let end =
                line[at..].find(|c: char| !c.is_ascii_alphanumeric() && c != '_').map_or(line.len(), |end| at + end);
            Some((&line[at..end], &line[end..]))
        };
        Self { lines: ptx.lines().filter(|line| tells(line)).filter_map(named).collect() }
    }

    fn value(&self, name: &str) -> Option<&'p str> {
        let (_, rest) = self.lines.iter().find(|(known, _)| *known == name)?;
        Some(rest.split_once('=').map_or("", |(_, value)| value).trim().trim_end_matches(';'))
    }

    fn symbol(&self, number: usize) -> Option<String> {
        Some(self.value(&format!("cutemplate_entry_{number}"))?.trim().to_owned()).filter(|symbol| !symbol.is_empty())
    }

    /// The bytes of a variable; PTX leaves zeros at the end out.
    fn bytes(&self, name: &str) -> Option<Vec<u8>> {
        let value = self.value(name)?.trim().trim_matches(['{', '}']);
        value.split(',').map(str::trim).filter(|byte| !byte.is_empty()).map(|byte| byte.parse().ok()).collect()
    }

    fn entry(&self, number: usize, declared: &OwnEntry, symbol: &str, ptx: &str) -> Result<Compiled, String> {
        let lacks = |what: &str| format!("it does not tell {what} of `{}`", declared.function);
        let facts = self.bytes(&format!("cutemplate_facts_{number}")).ok_or_else(|| lacks("the parameters"))?;
        let types = self.bytes(&format!("cutemplate_types_{number}")).ok_or_else(|| lacks("the types"))?;
        let ints = Ints(&facts);
        let count = usize::try_from(ints.at(0)).unwrap_or(0);
        let types = spelled(&types, count);
        let mut compiled = header(ptx, symbol).ok_or_else(|| lacks("the entry"))?;
        if compiled.params.len() != count {
            return Err(format!(
                "`{}` has {} parameters in PTX and {count} in C++",
                declared.function,
                compiled.params.len()
            ));
        }
        for (at, (param, ty)) in compiled.params.iter_mut().zip(types).enumerate() {
            let (size, align) = (param.size, param.align);
            *param = CompiledParam { ty, ..ints.param(1 + 6 * at) };
            if (param.size, param.align) != (size, align) {
                return Err(format!(
                    "parameter {at} of `{}` has {size} bytes at multiples of {align} in PTX, {} at {} in C++",
                    declared.function, param.size, param.align
                ));
            }
            let fields = declared.params.get(at).and_then(|param| param.fields()).unwrap_or_default();
            for of in 0..fields.len() {
                let name = format!("cutemplate_field_{number}_{at}_{of}");
                let bytes = self.bytes(&name).ok_or_else(|| lacks("a field"))?;
                let ints = Ints(&bytes);
                let offset = usize::try_from(ints.at(0)).unwrap_or(0);
                let ty = spelled(bytes.get(28..).unwrap_or_default(), 1).pop().unwrap_or_default();
                param.fields.push(CompiledParam { offset, ty, ..ints.param(1) });
            }
        }
        Ok(compiled)
    }
}

/// Integers of 32 bits; those that are left out are 0.
struct Ints<'b>(&'b [u8]);

impl Ints<'_> {
    fn at(&self, index: usize) -> i32 {
        let byte = |of: usize| self.0.get(4 * index + of).copied().unwrap_or(0);
        i32::from_le_bytes([byte(0), byte(1), byte(2), byte(3)])
    }

    fn param(&self, first: usize) -> CompiledParam {
        let size = |of: usize| usize::try_from(self.at(first + of)).unwrap_or(0);
        CompiledParam {
            size: size(0),
            align: size(1),
            kind: self.at(first + 2),
            to_size: size(3),
            to_align: size(4),
            constant: self.at(first + 5) != 0,
            ..CompiledParam::default()
        }
    }
}

/// The types in the name of a function: `.. [with T = int; T = float *]`, or `[with T = <int, float *>]`.
fn spelled(text: &[u8], count: usize) -> Vec<String> {
    let text = String::from_utf8_lossy(text);
    let text = text.trim_end_matches('\0');
    let inside = text.find("[with ").map_or("", |at| &text[at + 6..]).trim_end_matches(']');
    let mut types: Vec<String> = Vec::new();
    for piece in inside.split("; ") {
        match piece.split_once(" = ") {
            Some((_, ty)) => types.push(ty.to_owned()),
            None => {
                if let Some(last) = types.last_mut() {
                    last.push_str(piece);
                }
            }
        }
    }
    types.resize(count, "?".to_owned());
    types
}

/// The parameters of an entry with a body and its directives.
fn header(ptx: &str, symbol: &str) -> Option<Compiled> {
    let words = words(ptx).ok()?;
    let mut starts =
        words.windows(2).enumerate().filter(|(_, pair)| pair[0].text == ".entry" && pair[1].text == symbol);
    let (head, body) = starts.find_map(|(at, _)| {
        let rest = &words[at + 2..];
        let open = rest.iter().position(|word| matches!(word.text, "{" | ";"))?;
        (rest[open].text == "{").then(|| (&rest[..open], &rest[open..]))
    })?;
    let mut compiled = Compiled { params: params(head), ..Compiled::default() };
    compiled.reqntid = three(head, ".reqntid");
    compiled.maxntid = three(head, ".maxntid");
    compiled.cluster = three(head, ".reqnctapercluster");
    compiled.dynamic_shared = names_dynamic(&words, body);
    Some(compiled)
}

/// The entries with a body.
pub(super) fn listed(ptx: &str) -> Vec<ListedEntry> {
    let Ok(words) = words(ptx) else { return Vec::new() };
    let names = words.windows(2).filter(|pair| pair[0].text == ".entry").map(|pair| pair[1].text);
    let mut all: Vec<ListedEntry> = Vec::new();
    for symbol in names {
        let Some(compiled) = header(ptx, symbol).filter(|_| !all.iter().any(|known| known.symbol == symbol)) else {
            continue;
        };
        let param = |param: CompiledParam| ListedParam { size: param.size, align: param.align, ty: param.ty };
        all.push(ListedEntry {
            symbol: symbol.to_owned(),
            params: compiled.params.into_iter().map(param).collect(),
            required_block: compiled.reqntid,
            most_threads: compiled.maxntid,
            cluster: compiled.cluster,
            dynamic_shared: compiled.dynamic_shared,
        });
    }
    all
}

/// `.param .u64 name`, `.param .align 8 .b8 name[16]`.
fn params(head: &[Word<'_>]) -> Vec<CompiledParam> {
    let mut all = Vec::new();
    let mut starts: Vec<usize> = (0..head.len()).filter(|at| head[*at].text == ".param").collect();
    starts.push(head.iter().position(|word| word.text == ")").unwrap_or(head.len()));
    for pair in starts.windows(2) {
        let words = &head[pair[0]..pair[1].max(pair[0])];
        let number = |at: usize| words.get(at).and_then(|word| word.text.parse::<usize>().ok());
        let after = |text: &str| words.iter().position(|word| word.text == text).and_then(|at| number(at + 1));
        // The alignment behind `.ptr` is that of what it points to.
        let is_pointer = words.iter().any(|word| word.text == ".ptr");
        let scalar = words.iter().find_map(|word| {
            let bits: usize = word.text.strip_prefix('.')?.trim_start_matches(['u', 's', 'b', 'f']).parse().ok()?;
            Some((bits / 8, word.text.to_owned()))
        });
        let (width, ty) = scalar.unwrap_or_default();
        let align = after(".align").filter(|_| !is_pointer).unwrap_or(width);
        let size = width * after("[").unwrap_or(1);
        all.push(CompiledParam { size, align, ty, ..CompiledParam::default() });
    }
    all
}

/// `.maxntid 128, 1, 1`
fn three(head: &[Word<'_>], directive: &str) -> Option<[u32; 3]> {
    let at = head.iter().position(|word| word.text == directive)?;
    let mut numbers = head[at + 1..].iter().filter(|word| word.text != ",").map_while(|word| word.text.parse().ok());
    let mut next = || numbers.next();
    Some([next()?, next().unwrap_or(1), next().unwrap_or(1)])
}

/// Whether the body, or a function that it may call, names shared memory without a size.
fn names_dynamic(all: &[Word<'_>], body: &[Word<'_>]) -> bool {
    let mut names = Vec::new();
    for (at, word) in all.iter().enumerate().filter(|(_, word)| word.text == ".shared") {
        // `.extern .shared .align 16 .b8 name[];`
        let is_extern = at > 0 && all[at - 1].text == ".extern";
        let open = all[at..].iter().position(|word| matches!(word.text, "[" | ";" | "=")).map(|open| at + open);
        let open = open.filter(|open| is_extern && all[*open].text == "[" && word.text == ".shared");
        names.extend(open.and_then(|open| Some(all.get(open.checked_sub(1)?)?.text)));
    }
    let mut depth = 0_usize;
    let own = body.iter().take_while(|word| {
        depth += usize::from(word.text == "{");
        depth -= usize::from(word.text == "}").min(depth);
        depth > 0
    });
    let own: Vec<&str> = own.map(|word| word.text).collect();
    // A call may go to any function of the text.
    let calls = own.contains(&"call") || own.iter().any(|word| word.starts_with("call."));
    let mentioned =
        |name: &&str| own.contains(name) || calls && all.iter().filter(|word| word.text == *name).count() > 1;
    names.iter().any(mentioned)
}

/// The text with another name for an entry, and for its parameters.
fn renamed(ptx: &str, symbol: &str, name: &str) -> Result<String, String> {
    let params = format!("{symbol}_param_");
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_$.%@".contains(c);
    let mut out = String::with_capacity(ptx.len());
    let (mut rest, mut in_string) = (ptx, false);
    while let Some(first) = rest.chars().next() {
        let length = if is_part(first) { rest.find(|c| !is_part(c)).unwrap_or(rest.len()) } else { first.len_utf8() };
        let (word, after) = rest.split_at(length);
        in_string ^= first == '"';
        match word.strip_prefix(params.as_str()) {
            _ if in_string => out.push_str(word),
            Some(number) => out.extend([name, "_param_", number]),
            None if word == symbol => out.push_str(name),
            None if word == name => return Err(format!("the text has another symbol `{name}`")),
            None => out.push_str(word),
        }
        rest = after;
    }
    Ok(out)
}
