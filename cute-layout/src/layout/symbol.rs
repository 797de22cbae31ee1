//! Symbolic (run-time) extents: products of named sizes, with what is known to divide them.
//!
//! A layout over `M x N` is written before `M` and `N` are known. A name stands for any integer of at least 1 that its
//! divisor divides, so `M{div=8}` is 8, 16, 24 and so on. A symbolic leaf is an integer times a product of names and of
//! `ceil_div(product,product)`: `64*lda`, `M*N`, `ceil_div(M,64)` and `ceil_div(N,T)` can all stand in a shape or a stride.
//!
//! [`Term`] is the one form in which such numbers are computed: an integer times *atoms*, which are integers of at least
//! 1 that nothing more is known of. `M{div=8}` is `8` times the atom `M/8`, so two products are equal for all values of
//! the names where they are the same term, and one divides the other where its factor and its atoms do. A leaf holds the
//! number of a term, interned, so that it stays sixteen bytes and equal leaves are equal numbers.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::error::{Class, LayoutError, mul};
use super::inverse::greatest_common_divisor;
use super::leaf::{Leaf, Tag};

/// The most factors of all different products together that a process may name.
const MOST_FACTORS: usize = 1 << 20;

/// The most names in a product, those inside divisions too.
const MOST_NAMES: usize = 64;

/// The most divisions inside each other.
const MOST_NESTED: usize = 4;

/// A product of names and divisions, by number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Symbol(u32);

/// A positive integer that nothing more is known of.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Atom {
    /// A run-time extent divided by its known divisor.
    Name { name: String, divisor: i64 },
    /// `ceil_div(of, by)`, where the factors have no common divisor and no atom stands in both.
    CeilDiv { of: Term, by: Term },
}

/// An integer times atoms, which are in order.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Term {
    pub(crate) factor: i64,
    pub(crate) atoms: Vec<Atom>,
}

struct Table {
    terms: Vec<Term>,
    numbers: BTreeMap<Term, u32>,
    factors: usize,
}

fn table() -> MutexGuard<'static, Table> {
    static TABLE: Mutex<Table> = Mutex::new(Table { terms: Vec::new(), numbers: BTreeMap::new(), factors: 0 });
    // A panic elsewhere cannot leave the table half written: an insertion is its last step.
    TABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Atom {
    /// The least value.
    fn least(&self) -> i64 {
        match self {
            Atom::Name { .. } => 1,
            Atom::CeilDiv { of, by } if by.atoms.is_empty() => (of.least() - 1) / by.factor + 1,
            Atom::CeilDiv { .. } => 1,
        }
    }

    fn names(&self) -> usize {
        match self {
            Atom::Name { .. } => 1,
            Atom::CeilDiv { of, by } => of.names() + by.names(),
        }
    }

    /// How many divisions stand inside each other.
    fn nesting(&self) -> usize {
        match self {
            Atom::Name { .. } => 0,
            Atom::CeilDiv { of, by } => 1 + of.atoms.iter().chain(&by.atoms).map(Atom::nesting).max().unwrap_or(0),
        }
    }
}

impl Term {
    pub(crate) fn int(value: i64) -> Term {
        Term { factor: value, atoms: Vec::new() }
    }

    /// A named extent.
    pub(crate) fn named(name: &str, divisor: i64) -> Result<Term, LayoutError> {
        let identifier = name.len() <= 64
            && name.chars().next().is_some_and(|c| c.is_ascii_alphabetic())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !identifier || divisor < 1 {
            return Err(LayoutError::new("symbol", Class::Argument)
                .found(format!("name `{}`, divisor {divisor}", name.chars().take(64).collect::<String>()))
                .required("an identifier of at most 64 ASCII characters and a positive divisor"));
        }
        Ok(Term { factor: divisor, atoms: vec![Atom::Name { name: name.to_owned(), divisor }] })
    }

    /// The number at a leaf; `None` for a basis element and for `_`.
    pub(crate) fn of(leaf: Leaf) -> Option<Term> {
        if leaf.is_int() {
            return Some(Term::int(leaf.value));
        }
        let mut term = leaf.tag().as_symbol()?.term();
        term.factor = term.factor.checked_mul(leaf.value)?;
        Some(term)
    }

    /// The leaf of this number: as much of the factor as names can take is written as their divisors.
    pub(crate) fn leaf(self) -> Result<Leaf, LayoutError> {
        if self.atoms.is_empty() || self.factor == 0 {
            return Ok(Leaf::int(self.factor));
        }
        let mut rest = self.factor;
        for atom in &self.atoms {
            if let Atom::Name { divisor, .. } = atom {
                rest /= greatest_common_divisor(rest, *divisor);
            }
        }
        let symbol = Symbol::intern(Term { factor: self.factor / rest, atoms: self.atoms })?;
        Ok(Leaf::tagged(rest, Tag::symbol(symbol)))
    }

    fn names(&self) -> usize {
        self.atoms.iter().map(Atom::names).sum()
    }

    /// The least value where the factor is positive; one that fits, at least.
    pub(crate) fn least(&self) -> i64 {
        self.atoms.iter().fold(self.factor, |least, atom| least.saturating_mul(atom.least()))
    }

    pub(crate) fn times(&self, other: &Term) -> Result<Term, LayoutError> {
        let factor = mul(self.factor, other.factor)?;
        let names = self.names() + other.names();
        if names > MOST_NAMES {
            return Err(LayoutError::new("symbol", Class::Limit)
                .found(format!("a product of {names} extents"))
                .required(format!("at most {MOST_NAMES}")));
        }
        let mut atoms = [self.atoms.as_slice(), &other.atoms].concat();
        atoms.sort_unstable();
        Ok(Term { factor, atoms })
    }

    /// The quotient, where the other divides this for all values of the names.
    pub(crate) fn divided(&self, by: &Term) -> Option<Term> {
        if by.factor == 0 || self.factor % by.factor != 0 {
            return None;
        }
        Some(Term { factor: self.factor / by.factor, atoms: without(&self.atoms, &by.atoms)? })
    }

    /// `ceil_div(self, by)` for a positive `by`; one division after another is one by the product.
    pub(crate) fn ceil_div(&self, by: &Term) -> Result<Term, LayoutError> {
        // Common factors of both sides cancel: every atom is at least 1.
        let common = greatest_common_divisor(self.factor, by.factor);
        let (of_atoms, by_atoms) = apart(&self.atoms, &by.atoms);
        let of = Term { factor: self.factor / common, atoms: of_atoms };
        let by = Term { factor: by.factor / common, atoms: by_atoms };
        if of.atoms.is_empty() && by.atoms.is_empty() {
            return Ok(Term::int(of.factor / by.factor + i64::from(of.factor % by.factor > 0)));
        }
        if by == Term::int(1) {
            return Ok(of);
        }
        if let ([Atom::CeilDiv { of, by: first }], 1) = (of.atoms.as_slice(), of.factor) {
            return of.ceil_div(&first.times(&by)?);
        }
        if of == Term::int(1) {
            return Ok(of);
        }
        let found = || format!("ceil_div({self},{by})");
        let atom = Atom::CeilDiv { of, by: by.clone() };
        if atom.nesting() > MOST_NESTED || atom.names() > MOST_NAMES {
            return Err(LayoutError::new("symbol", Class::Limit)
                .found(found())
                .required(format!("at most {MOST_NESTED} divisions inside each other, and {MOST_NAMES} names")));
        }
        Ok(Term { factor: 1, atoms: vec![atom] })
    }
}

/// The atoms of each of two products that the other does not have.
fn apart(left: &[Atom], right: &[Atom]) -> (Vec<Atom>, Vec<Atom>) {
    let (mut left, mut rest) = (left.to_vec(), Vec::new());
    for atom in right {
        match left.iter().position(|other| other == atom) {
            Some(at) => drop(left.remove(at)),
            None => rest.push(atom.clone()),
        }
    }
    (left, rest)
}

/// The atoms without others, all of which must be present.
pub(crate) fn without(atoms: &[Atom], taken: &[Atom]) -> Option<Vec<Atom>> {
    let mut left = atoms.to_vec();
    for atom in taken {
        left.remove(left.iter().position(|other| other == atom)?);
    }
    Some(left)
}

impl Symbol {
    pub(crate) fn id(self) -> u32 {
        self.0
    }

    pub(crate) fn from_id(id: u32) -> Symbol {
        Symbol(id)
    }

    /// A named run-time extent that is known to be a multiple of `divisor` (1 where nothing is known).
    ///
    /// *Law.* The extent may have every value of at least 1 that `divisor()` divides, and no other.
    ///
    /// *Source.* The CuTe DSL's dynamic integers, `?{div=n}`.
    ///
    /// # Errors
    /// The name is not an identifier, the divisor is not positive, or too many symbols exist.
    ///
    /// ```
    /// use cute_layout::layout::Symbol;
    /// let m = Symbol::named("M", 8)?;
    /// assert_eq!(m.to_string(), "M{div=8}");
    /// assert_eq!(m.divisor(), 8);
    /// # Ok::<(), cute_layout::layout::LayoutError>(())
    /// ```
    pub fn named(name: &str, divisor: i64) -> Result<Symbol, LayoutError> {
        Symbol::intern(Term::named(name, divisor)?)
    }

    fn intern(term: Term) -> Result<Symbol, LayoutError> {
        let mut table = table();
        if let Some(&id) = table.numbers.get(&term) {
            return Ok(Symbol(id));
        }
        let id = table.terms.len();
        let factors = table.factors + term.names();
        if factors > MOST_FACTORS {
            return Err(LayoutError::new("symbol", Class::Limit)
                .found(format!("{id} different symbolic products of {factors} factors"))
                .required(format!("at most {MOST_FACTORS} factors in one process")));
        }
        table.factors = factors;
        table.terms.push(term.clone());
        table.numbers.insert(term, id as u32);
        Ok(Symbol(id as u32))
    }

    pub(crate) fn term(self) -> Term {
        table().terms.get(self.0 as usize).cloned().unwrap_or(Term::int(1))
    }

    /// An integer that divides every value that this product can take.
    #[must_use]
    pub fn divisor(self) -> i64 {
        self.term().factor
    }

    /// The product of two symbols.
    ///
    /// *Law.* `divisor()` of the product is the product of the divisors.
    ///
    /// *Source.* The CuTe DSL's dynamic integers, `?{div=n}`.
    ///
    /// # Errors
    /// Too many symbols exist, or the divisor does not fit in 64 bits.
    ///
    /// ```
    /// use cute_layout::layout::Symbol;
    /// let product = Symbol::named("M", 8)?.times(Symbol::named("N", 4)?)?;
    /// assert_eq!((product.to_string(), product.divisor()), ("M{div=8}*N{div=4}".into(), 32));
    /// # Ok::<(), cute_layout::layout::LayoutError>(())
    /// ```
    pub fn times(self, other: Symbol) -> Result<Symbol, LayoutError> {
        Symbol::intern(self.term().times(&other.term())?)
    }
}

impl fmt::Display for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.term().fmt(f)
    }
}

impl fmt::Display for Term {
    /// The factor that names do not take, then the names with their divisors and the divisions.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.factor;
        let mut parts = Vec::new();
        for atom in &self.atoms {
            parts.push(match atom {
                Atom::Name { name, divisor: 1 } => name.clone(),
                Atom::Name { name, divisor } => {
                    let taken = greatest_common_divisor(rest, *divisor);
                    rest /= taken;
                    match divisor / taken {
                        1 => format!("{name}{{div={divisor}}}"),
                        by => format!("ceil_div({name}{{div={divisor}}},{by})"),
                    }
                }
                Atom::CeilDiv { of, by } => format!("ceil_div({of},{by})"),
            });
        }
        if rest != 1 || parts.is_empty() {
            parts.insert(0, rest.to_string());
        }
        f.write_str(&parts.join("*"))
    }
}
