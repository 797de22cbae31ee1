//! The statements of a function's body.

use super::ast::{Instruction, Operand, Statement};
use super::error::Error;
use super::lex::Token;
use super::parse::Parser;
use super::parse_expr::Constant;
use super::types::Space;

/// Scopes in scopes; compilers write one or two.
const MAX_SCOPES: usize = 64;

impl<'a> Parser<'a> {
    /// Up to the closing brace.
    pub(super) fn body(&mut self) -> Result<Vec<Statement<'a>>, Error> {
        let mut statements = Vec::new();
        let mut depth = 0;
        loop {
            match self.peek() {
                None => return Err(self.unexpected("`}`: the function does not end")),
                Some(Token::Punct(b'}')) => {
                    self.at += 1;
                    if depth == 0 {
                        return Ok(statements);
                    }
                    depth -= 1;
                    statements.push(Statement::Close);
                }
                Some(Token::Punct(b'{')) => {
                    depth += 1;
                    if depth > MAX_SCOPES {
                        return Err(self.unexpected("at most 64 nested scopes"));
                    }
                    self.at += 1;
                    statements.push(Statement::Open);
                }
                Some(Token::Punct(b';')) => self.at += 1,
                Some(Token::Dot("reg")) => self.reg_statement(&mut statements)?,
                Some(Token::Dot("loc")) => self.loc_directive()?,
                Some(Token::Dot("pragma")) => self.skip_statement()?,
                Some(Token::Dot(w)) if Space::parse(w).is_some() => {
                    statements.extend(self.variables(false)?.into_iter().map(Statement::Variable));
                }
                Some(Token::Dot(_)) => return Err(self.unexpected("an instruction, a label or a declaration")),
                Some(Token::Word(name)) if self.peek_at(1) == Some(Token::Punct(b':')) => {
                    let at = self.position();
                    self.at += 2;
                    statements.push(self.label(name, at)?);
                }
                _ => {
                    let instruction = self.instruction()?;
                    statements.push(Statement::Instruction(Box::new(instruction)));
                }
            }
        }
    }

    fn label(&mut self, name: &'a str, at: super::error::Position) -> Result<Statement<'a>, Error> {
        match self.peek() {
            Some(Token::Dot(list @ ("branchtargets" | "calltargets"))) => {
                self.at += 1;
                let what = if list == "branchtargets" { "a label" } else { "a function" };
                let mut targets = vec![self.word(what)?];
                while self.is(b',') {
                    targets.push(self.word(what)?);
                }
                self.expect(b';')?;
                Ok(Statement::Targets(name, targets, at))
            }
            Some(Token::Dot("callprototype")) => {
                self.at += 1;
                let results = self.parameters_if_first()?;
                self.word("`_`")?;
                let params = self.parameters()?;
                // `.noreturn` and `.abi_preserve` change no result.
                self.skip_statement()?;
                Ok(Statement::Prototype(name, results, params, at))
            }
            _ => Ok(Statement::Label(name, at)),
        }
    }

    fn instruction(&mut self) -> Result<Instruction<'a>, Error> {
        let mut at = self.position();
        let mut guard = None;
        if self.is(b'@') {
            let negated = self.is(b'!');
            guard = Some((self.word("a predicate")?, negated));
            at = self.position();
        }
        let name = self.word("an instruction")?;
        let mut modifiers = Vec::new();
        while let Some(Token::Dot(m)) = self.peek() {
            modifiers.push(m);
            self.at += 1;
        }
        let mut operands = Vec::new();
        self.in_call = name == "call";
        if !self.is(b';') {
            loop {
                operands.push(self.operand(0)?);
                if !self.is(b',') {
                    break;
                }
            }
            self.expect(b';')?;
        }
        Ok(Instruction { at, guard, name, modifiers, operands, loc: self.loc })
    }

    fn operand(&mut self, depth: u32) -> Result<Operand<'a>, Error> {
        let first = self.single(depth)?;
        if self.is(b'|') {
            let second = self.single(depth)?;
            return Ok(Operand::Pair(Box::new(first), Box::new(second)));
        }
        Ok(first)
    }

    fn list(&mut self, close: u8, depth: u32) -> Result<Vec<Operand<'a>>, Error> {
        if depth > 4 {
            return Err(self.unexpected("operands nested less deeply"));
        }
        let mut all = Vec::new();
        while !self.is(close) {
            all.push(self.operand(depth + 1)?);
            if !self.is(b',') {
                self.expect(close)?;
                break;
            }
        }
        Ok(all)
    }

    fn single(&mut self, depth: u32) -> Result<Operand<'a>, Error> {
        match self.peek() {
            // `(a, b)` of a call is not an expression.
            Some(Token::Punct(b'(')) if self.in_call => {
                self.at += 1;
                Ok(Operand::List(self.list(b')', depth)?))
            }
            _ if self.is_constant() => self.constant_operand(),
            Some(Token::Punct(b'!')) => {
                self.at += 1;
                let name = self.word("a predicate")?;
                Ok(Operand::Not(Box::new(Operand::Name(name, None))))
            }
            Some(Token::Punct(b'{')) => {
                self.at += 1;
                Ok(Operand::Vector(self.list(b'}', depth)?))
            }
            Some(Token::Punct(b'[')) => {
                self.at += 1;
                self.address(depth)
            }
            Some(Token::Word(name)) => {
                self.at += 1;
                if let Some(Token::Dot(component)) = self.peek() {
                    // `%tid.x`, `%v.y`; `.reg`-less names have no dots.
                    self.at += 1;
                    return Ok(Operand::Name(name, Some(component)));
                }
                match self.peek() {
                    Some(Token::Punct(b'+' | b'-')) => Ok(Operand::Offset(name, self.offset()?)),
                    _ => Ok(Operand::Name(name, None)),
                }
            }
            _ => Err(self.unexpected("an operand")),
        }
    }

    /// A number, or `-%r1` as video instructions have it.
    fn constant_operand(&mut self) -> Result<Operand<'a>, Error> {
        if let (Some(Token::Punct(b'-')), Some(Token::Word(name))) = (self.peek(), self.peek_at(1))
            && name != "WARP_SZ"
        {
            self.at += 1;
            return Ok(Operand::Negated(Box::new(self.single(0)?)));
        }
        Ok(match self.constant("an operand")? {
            Constant::Signed(v) => Operand::Int(i128::from(v)),
            Constant::Unsigned(v) => Operand::Int(i128::from(v)),
            Constant::Float(v) => Operand::Float(v.to_bits()),
        })
    }

    fn address(&mut self, depth: u32) -> Result<Operand<'a>, Error> {
        let (base, offset) = match self.peek() {
            _ if self.is_constant() => {
                let at = self.position();
                let value = self.constant_int("an address")?;
                let value = i64::try_from(value).or_else(|_| u64::try_from(value).map(|v| v as i64));
                (None, value.map_err(|_| Error::syntax(at, "an address is out of range"))?)
            }
            Some(Token::Word(name)) => {
                self.at += 1;
                (Some(name), self.offset()?)
            }
            _ => return Err(self.unexpected("an address: a register, a variable or a number")),
        };
        let mut more = Vec::new();
        if self.is(b',') {
            more = self.list(b']', depth)?;
        } else {
            self.expect(b']')?;
        }
        Ok(Operand::Address(base, offset, more))
    }
}
