//! From tokens to a module: directives, variables, functions. Declarations are in `declare`, bodies in `parse_body`.

use std::collections::HashMap;

use super::ast::{Function, Loc, Module};
use super::error::{Error, Position};
use super::lex::{Spanned, Token, tokens};
use super::types::Space;

/// Texts beyond this are refused, so that memory stays bounded: about 20 times the largest kernel seen.
pub(super) const MAX_TEXT: usize = 64 << 20;

pub(super) struct Parser<'a> {
    pub(super) tokens: Vec<Spanned<'a>>,
    pub(super) at: usize,
    pub(super) end: Position,
    pub(super) module: Module<'a>,
    /// Whether the parser is in the operands of a call.
    pub(super) in_call: bool,
    /// The place that instructions belong to from here on.
    pub(super) loc: Option<u32>,
    loc_index: HashMap<(u32, u32, Option<u32>), u32>,
    /// The last place of a line, which an `inlined_at` refers to.
    last_loc: HashMap<(u32, u32), u32>,
}

/// Parses a module.
pub(super) fn parse(text: &str) -> Result<Module<'_>, Error> {
    if text.len() > MAX_TEXT {
        return Err(Error::syntax(Position::default(), "the text is too large")
            .found(format!("{} B", text.len()))
            .required(format!("at most {MAX_TEXT} B")));
    }
    // nvcc ends what it puts into a fatbin with zeros.
    let text = text.trim_end_matches('\0');
    let tokens = tokens(text)?;
    let line = u32::try_from(text.lines().count()).unwrap_or(u32::MAX);
    let mut parser = Parser {
        tokens,
        at: 0,
        end: Position { line, column: 1 },
        module: Module::default(),
        in_call: false,
        loc: None,
        loc_index: HashMap::new(),
        last_loc: HashMap::new(),
    };
    parser.run()?;
    Ok(parser.module)
}

impl<'a> Parser<'a> {
    pub(super) fn peek(&self) -> Option<Token<'a>> {
        self.tokens.get(self.at).map(|t| t.token)
    }

    pub(super) fn peek_at(&self, ahead: usize) -> Option<Token<'a>> {
        self.tokens.get(self.at + ahead).map(|t| t.token)
    }

    pub(super) fn position(&self) -> Position {
        self.tokens.get(self.at).map_or(self.end, |t| t.at)
    }

    pub(super) fn next(&mut self) -> Option<Token<'a>> {
        let token = self.peek();
        self.at += 1;
        token
    }

    pub(super) fn is(&mut self, punct: u8) -> bool {
        let is = self.peek() == Some(Token::Punct(punct));
        self.at += usize::from(is);
        is
    }

    pub(super) fn is_dot(&mut self, word: &str) -> bool {
        let is = self.peek() == Some(Token::Dot(word));
        self.at += usize::from(is);
        is
    }

    pub(super) fn unexpected(&self, required: &str) -> Error {
        let found = match self.peek() {
            None => "the end of the text".to_owned(),
            Some(Token::Word(w)) => format!("`{}`", clip(w)),
            Some(Token::Dot(w)) => format!("`.{}`", clip(w)),
            Some(Token::Int(v) | Token::Unsigned(v)) => format!("`{v}`"),
            Some(Token::Float(bits, _)) => format!("the number {}", f64::from_bits(bits)),
            Some(Token::Str(s)) => format!("the string \"{}\"", clip(s)),
            Some(Token::Punct(c)) => format!("`{}`", char::from(c)),
        };
        Error::syntax(self.position(), "the text is not PTX here").found(found).required(required)
    }

    pub(super) fn expect(&mut self, punct: u8) -> Result<(), Error> {
        if self.is(punct) { Ok(()) } else { Err(self.unexpected(&format!("`{}`", char::from(punct)))) }
    }

    pub(super) fn word(&mut self, what: &str) -> Result<&'a str, Error> {
        match self.peek() {
            Some(Token::Word(w)) => {
                self.at += 1;
                Ok(w)
            }
            _ => Err(self.unexpected(what)),
        }
    }

    pub(super) fn int(&mut self, what: &str) -> Result<i128, Error> {
        let negative = self.is(b'-');
        match self.peek() {
            Some(Token::Int(v) | Token::Unsigned(v)) => {
                self.at += 1;
                Ok(if negative { -i128::from(v) } else { i128::from(v) })
            }
            _ => Err(self.unexpected(what)),
        }
    }

    pub(super) fn number(&mut self, what: &str) -> Result<u32, Error> {
        let at = self.position();
        let value = self.int(what)?;
        u32::try_from(value)
            .map_err(|_| Error::syntax(at, "a number is out of range").found(value.to_string()).required(what))
    }

    fn run(&mut self) -> Result<(), Error> {
        while let Some(token) = self.peek() {
            match token {
                Token::Dot("version") => self.version()?,
                Token::Dot("target") => self.target()?,
                Token::Dot("address_size") => self.address_size()?,
                Token::Dot("file") => self.file()?,
                Token::Dot("loc") => self.loc_directive()?,
                Token::Dot("pragma") | Token::Dot("alias") => self.skip_statement()?,
                Token::Punct(b';') => self.at += 1,
                _ => self.item()?,
            }
        }
        if self.module.version == (0, 0) {
            return Err(Error::syntax(Position { line: 1, column: 1 }, "the text does not begin with a PTX directive")
                .required("`.version 7.0` or later"));
        }
        Ok(())
    }

    fn version(&mut self) -> Result<(), Error> {
        let at = self.position();
        self.at += 1;
        let Some(Token::Float(bits, _)) = self.next() else {
            self.at -= 1;
            return Err(self.unexpected("a version, as 9.0"));
        };
        let tenths = (f64::from_bits(bits) * 10.0).round();
        let version = if (0.0..1000.0).contains(&tenths) { tenths as u32 } else { 0 };
        if !(60..=99).contains(&version) {
            return Err(Error::unsupported(at, "a version of PTX that this executor does not know")
                .found(format!("{}.{}", version / 10, version % 10))
                .required("6.0 to 9.9"));
        }
        self.module.version = (version / 10, version % 10);
        Ok(())
    }

    fn target(&mut self) -> Result<(), Error> {
        self.at += 1;
        self.module.target = self.word("an architecture, as sm_90a")?;
        while self.is(b',') {
            self.word("a target option")?;
        }
        Ok(())
    }

    fn address_size(&mut self) -> Result<(), Error> {
        self.at += 1;
        let at = self.position();
        match self.int("64")? {
            64 => Ok(()),
            other => Err(Error::unsupported(at, "addresses that are not 64 bits wide").found(other.to_string())),
        }
    }

    fn file(&mut self) -> Result<(), Error> {
        self.at += 1;
        let number = self.number("the file's number")?;
        let Some(Token::Str(name)) = self.next() else {
            self.at -= 1;
            return Err(self.unexpected("the file's name"));
        };
        self.module.files.push((number, name));
        while self.is(b',') {
            self.int("a time or a size")?;
        }
        Ok(())
    }

    /// `.loc file line column [, function_name label [+ n], inlined_at file line column]`
    pub(super) fn loc_directive(&mut self) -> Result<(), Error> {
        self.at += 1;
        let (file, line) = (self.number("a file's number")?, self.number("a line")?);
        self.number("a column")?;
        let mut inlined_at = None;
        if self.is(b',') {
            if self.word("function_name")? == "function_name" {
                self.word("a label")?;
                if self.is(b'+') {
                    self.int("an offset")?;
                }
                self.expect(b',')?;
                self.word("inlined_at")?;
            }
            let (file, line) = (self.number("a file's number")?, self.number("a line")?);
            self.number("a column")?;
            let known = self.last_loc.get(&(file, line)).copied();
            inlined_at = Some(known.unwrap_or_else(|| self.place(Loc { file, line, inlined_at: None })));
        }
        self.loc = Some(self.place(Loc { file, line, inlined_at }));
        Ok(())
    }

    fn place(&mut self, loc: Loc) -> u32 {
        let locs = &mut self.module.locs;
        let index = *self.loc_index.entry((loc.file, loc.line, loc.inlined_at)).or_insert_with(|| {
            locs.push(loc);
            u32::try_from(locs.len() - 1).unwrap_or(u32::MAX)
        });
        self.last_loc.insert((loc.file, loc.line), index);
        index
    }

    pub(super) fn skip_statement(&mut self) -> Result<(), Error> {
        let at = self.position();
        while let Some(token) = self.next() {
            if token == Token::Punct(b';') {
                return Ok(());
            }
        }
        Err(Error::syntax(at, "a statement does not end").required("`;`"))
    }

    fn item(&mut self) -> Result<(), Error> {
        let start = self.at;
        let mut is_extern = false;
        loop {
            match self.peek() {
                Some(Token::Dot("visible" | "weak" | "common")) => self.at += 1,
                Some(Token::Dot("extern")) => {
                    self.at += 1;
                    is_extern = true;
                }
                Some(Token::Dot("entry")) => return self.function(true),
                Some(Token::Dot("func")) => return self.function(false),
                Some(Token::Dot(w)) if Space::parse(w).is_some() => {
                    let mut variables = self.variables(is_extern)?;
                    self.module.variables.append(&mut variables);
                    return Ok(());
                }
                Some(Token::Dot("texref" | "samplerref" | "surfref" | "tex")) => {
                    return Err(Error::unsupported(
                        self.position(),
                        "textures, samplers and surfaces are not run here",
                    ));
                }
                _ => {
                    let found = self.unexpected("a directive: .visible, .entry, .func, .global, .const, .shared");
                    self.at = start;
                    return Err(found);
                }
            }
        }
    }

    fn triple(&mut self) -> Result<[u32; 3], Error> {
        let mut of = [1, 1, 1];
        of[0] = self.number("a number of threads")?;
        for n in &mut of[1..] {
            if !self.is(b',') {
                break;
            }
            *n = self.number("a number of threads")?;
        }
        Ok(of)
    }

    fn function(&mut self, is_entry: bool) -> Result<(), Error> {
        self.at += 1;
        let results = if is_entry { Vec::new() } else { self.parameters_if_first()? };
        let at = self.position();
        let name = self.word("the name of a function")?;
        let params = self.parameters()?;
        let mut function = Function {
            name,
            at,
            is_entry,
            results,
            params,
            reqntid: None,
            maxntid: None,
            reqnctapercluster: None,
            maxnreg: None,
            minnctapersm: 1,
            body: None,
        };
        loop {
            match self.peek() {
                Some(Token::Dot("reqntid")) => {
                    self.at += 1;
                    function.reqntid = Some(self.triple()?);
                }
                Some(Token::Dot("maxntid")) => {
                    self.at += 1;
                    function.maxntid = Some(self.triple()?);
                }
                Some(Token::Dot("reqnctapercluster")) => {
                    self.at += 1;
                    function.reqnctapercluster = Some(self.triple()?);
                }
                Some(Token::Dot("maxnreg")) => {
                    self.at += 1;
                    function.maxnreg = Some(self.number("a number of registers")?);
                }
                Some(Token::Dot("minnctapersm")) => {
                    self.at += 1;
                    function.minnctapersm = self.number("a number of blocks")?;
                }
                Some(Token::Dot("maxclusterrank" | "maxnctapersm")) => {
                    self.at += 1;
                    self.number("a number")?;
                }
                Some(Token::Dot("explicitcluster" | "noreturn" | "blocksareclusters")) => self.at += 1,
                Some(Token::Dot("pragma")) => self.skip_statement()?,
                Some(Token::Punct(b';')) => {
                    self.at += 1;
                    break;
                }
                Some(Token::Punct(b'{')) => {
                    self.at += 1;
                    self.loc = None;
                    function.body = Some(self.body()?);
                    break;
                }
                _ => return Err(self.unexpected("`{`, `;` or a directive of the function")),
            }
        }
        self.module.functions.push(function);
        Ok(())
    }
}

/// A name for an error message, cut to a limit: hostile texts have long names.
pub(super) fn clip(name: &str) -> String {
    if name.len() <= 80 { name.to_owned() } else { name.chars().take(77).chain("...".chars()).collect() }
}
