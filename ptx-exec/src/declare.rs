//! Declarations: variables of memory, parameters, registers.

use super::ast::{Statement, Value, Variable};
use super::error::Error;
use super::lex::Token;
use super::parse::{Parser, clip};
use super::parse_expr::Constant;
use super::types::{Space, Ty};

/// The largest variable; more does not fit on a GPU.
const MAX_VARIABLE: u64 = 1 << 38;

/// The start of a variable's declaration.
struct Head {
    space: Option<Space>,
    align: Option<u64>,
    ty: Option<Ty>,
    lanes: u32,
    pointee: Option<(Space, u64)>,
}

impl<'a> Parser<'a> {
    /// `.shared .align 16 .b8 name[1024] = {..}, other;`
    pub(super) fn variables(&mut self, is_extern: bool) -> Result<Vec<Variable<'a>>, Error> {
        let mut all: Vec<Variable<'a>> = Vec::new();
        let head = self.variable_head()?;
        loop {
            let mut variable = self.declarator(&head, is_extern)?;
            if self.is(b'=') {
                self.initialiser(&mut variable.init, 0)?;
                let given = variable.init.len() as u64;
                let elements = *variable.elements.get_or_insert(given);
                if given > elements {
                    return Err(Error::syntax(variable.at, "an initialiser has more values than its variable")
                        .found(format!("{given} values"))
                        .required(format!("at most {elements}")));
                }
            }
            // `.reg .b32 %r<100>` is not a variable; `.shared .b32 a<3>` is one of three.
            if self.is(b'<') {
                let at = self.position();
                let count = self.number("how many")?;
                self.expect(b'>')?;
                return Err(
                    Error::unsupported(at, "a parameterised set of variables in memory").found(format!("<{count}>"))
                );
            }
            all.push(variable);
            if !self.is(b',') {
                break;
            }
        }
        self.expect(b';')?;
        Ok(all)
    }

    fn variable_head(&mut self) -> Result<Head, Error> {
        let mut head = Head { space: None, align: None, ty: None, lanes: 1, pointee: None };
        loop {
            let at = self.position();
            match self.peek() {
                Some(Token::Dot("align")) => {
                    self.at += 1;
                    head.align = Some(self.alignment()?);
                }
                Some(Token::Dot("ptr")) => {
                    self.at += 1;
                    let space = match self.peek() {
                        Some(Token::Dot(w)) if Space::parse(w).is_some() => {
                            self.at += 1;
                            Space::parse(w).unwrap_or(Space::Generic)
                        }
                        _ => Space::Generic,
                    };
                    let align = if self.is_dot("align") { self.alignment()? } else { 4 };
                    head.pointee = Some((space, align));
                }
                Some(Token::Dot("v2")) => (self.at, head.lanes) = (self.at + 1, 2),
                Some(Token::Dot("v4")) => (self.at, head.lanes) = (self.at + 1, 4),
                Some(Token::Dot("v8")) => (self.at, head.lanes) = (self.at + 1, 8),
                Some(Token::Dot("attribute" | "managed")) => {
                    return Err(Error::unsupported(at, "attributes of variables, such as .managed, are not run here"));
                }
                Some(Token::Dot(w @ ("texref" | "surfref" | "samplerref"))) => {
                    let what = "references to textures, surfaces and samplers are not run here";
                    return Err(Error::unsupported(at, what).found(format!(".{w}")));
                }
                Some(Token::Dot(w)) => {
                    if let Some(space) = Space::parse(w) {
                        head.space = Some(space);
                    } else if let Some(ty) = Ty::parse(w) {
                        head.ty = Some(ty);
                    } else {
                        return Err(self.unexpected("a state space, a type, .align or a name"));
                    }
                    self.at += 1;
                }
                _ => return Ok(head),
            }
        }
    }

    fn alignment(&mut self) -> Result<u64, Error> {
        let at = self.position();
        let align = self.int("an alignment")?;
        u64::try_from(align).ok().filter(|a| a.is_power_of_two() && *a <= 1 << 20).ok_or_else(|| {
            Error::syntax(at, "an alignment is no power of two").found(align.to_string()).required("1 to 1048576")
        })
    }

    fn declarator(&mut self, head: &Head, is_extern: bool) -> Result<Variable<'a>, Error> {
        let at = self.position();
        let name = self.word("the name of a variable")?;
        let (Some(space), Some(ty)) = (head.space, head.ty) else {
            return Err(Error::syntax(at, "a variable without state space or type").found(clip(name)));
        };
        let mut elements = Some(u64::from(head.lanes));
        let mut is_array = head.lanes > 1;
        while self.is(b'[') {
            is_array = true;
            if self.is(b']') {
                elements = None;
                continue;
            }
            let at = self.position();
            let n = self.int("how many elements")?;
            let n = u64::try_from(n).ok().filter(|n| *n <= MAX_VARIABLE);
            let n = n.ok_or_else(|| Error::syntax(at, "an array of an impossible size"))?;
            elements = elements.and_then(|e| e.checked_mul(n)).filter(|e| *e <= MAX_VARIABLE);
            if elements.is_none() {
                return Err(Error::syntax(at, "an array of an impossible size").found(clip(name)));
            }
            self.expect(b']')?;
        }
        let align = head.align.unwrap_or(ty.bytes() * u64::from(head.lanes));
        Ok(Variable {
            name,
            at,
            space,
            ty,
            elements,
            align,
            is_extern,
            init: Vec::new(),
            pointee: head.pointee,
            is_array,
        })
    }

    fn initialiser(&mut self, into: &mut Vec<Value<'a>>, depth: u32) -> Result<(), Error> {
        if !self.is(b'{') {
            into.push(self.value()?);
            return Ok(());
        }
        if depth > 8 {
            return Err(self.unexpected("at most 8 nested braces"));
        }
        while !self.is(b'}') {
            self.initialiser(into, depth + 1)?;
            if !self.is(b',') {
                self.expect(b'}')?;
                break;
            }
        }
        Ok(())
    }

    fn value(&mut self) -> Result<Value<'a>, Error> {
        let at = self.position();
        let is_mask = self.peek_at(1) == Some(Token::Punct(b'('));
        match self.peek() {
            Some(Token::Int(mask)) if is_mask => self.masked(mask),
            _ if self.is_constant() => Ok(match self.constant("a number or an address")? {
                Constant::Signed(v) => Value::Int(i128::from(v)),
                Constant::Unsigned(v) => Value::Int(i128::from(v)),
                Constant::Float(v) => Value::Float(v.to_bits()),
            }),
            Some(Token::Word(_)) => {
                let (name, offset) = self.named_address()?;
                Ok(Value::Address(name, offset, None))
            }
            _ => Err(Error::syntax(at, "an initialiser cannot be read").required("a number or an address")),
        }
    }

    /// `name + 4`, or `generic(name) + 4`.
    fn named_address(&mut self) -> Result<(&'a str, i64), Error> {
        let mut name = self.word("the name of a variable or of a function")?;
        let mut offset = 0;
        if name == "generic" && self.is(b'(') {
            name = self.word("the name of a variable")?;
            offset = self.offset()?;
            self.expect(b')')?;
        }
        Ok((name, offset.wrapping_add(self.offset()?)))
    }

    /// `0xff00(name + 4)`: a byte of an address. PTX ISA, "Initializers".
    fn masked(&mut self, mask: u64) -> Result<Value<'a>, Error> {
        let at = self.position();
        let byte = mask.trailing_zeros() / 8;
        if byte > 7 || mask != 0xff << (8 * byte) {
            return Err(Error::syntax(at, "a mask of an address names no byte of it")
                .found(format!("{mask:#x}"))
                .required("0xff, 0xff00, 0xff0000 and so on"));
        }
        self.at += 2;
        let (name, offset) = self.named_address()?;
        self.expect(b')')?;
        Ok(Value::Address(name, offset, Some(byte)))
    }

    pub(super) fn parameters(&mut self) -> Result<Vec<Variable<'a>>, Error> {
        let mut params = Vec::new();
        if !self.is(b'(') {
            return Ok(params);
        }
        while !self.is(b')') {
            if self.is_dot("reg") {
                return Err(Error::unsupported(self.position(), "parameters in registers are not run here"));
            }
            let head = self.variable_head()?;
            params.push(self.declarator(&head, false)?);
            if !self.is(b',') {
                self.expect(b')')?;
                break;
            }
        }
        Ok(params)
    }

    pub(super) fn parameters_if_first(&mut self) -> Result<Vec<Variable<'a>>, Error> {
        if self.peek() == Some(Token::Punct(b'(')) { self.parameters() } else { Ok(Vec::new()) }
    }

    pub(super) fn reg_statement(&mut self, into: &mut Vec<Statement<'a>>) -> Result<(), Error> {
        self.at += 1;
        let (mut ty, mut lanes) = (None, 1);
        while let Some(Token::Dot(w)) = self.peek() {
            match (w, Ty::parse(w)) {
                ("v2", _) => lanes = 2,
                ("v4", _) => lanes = 4,
                (_, Some(t)) => ty = Some(t),
                _ => return Err(self.unexpected("the type of a register")),
            }
            self.at += 1;
        }
        let Some(ty) = ty else { return Err(self.unexpected("the type of a register")) };
        loop {
            let at = self.position();
            let name = self.word("the name of a register")?;
            let mut count = None;
            if self.is(b'<') {
                count = Some(self.number("how many registers")?);
                self.expect(b'>')?;
            }
            into.push(Statement::Reg { ty, lanes, name, count, at });
            if !self.is(b',') {
                break;
            }
        }
        self.expect(b';')
    }
}
