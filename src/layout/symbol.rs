//! Symbolic (run-time) extents: products of named sizes, with what is known to divide them.
//!
//! A layout over `M x N` is written before `M` and `N` are known. A symbolic leaf is an integer factor times a product
//! of *atoms*; an atom is a named extent or the ceiling of a product divided by an integer, so `64*lda`, `M*N` and
//! `ceil_div(M,64)` can all stand in a shape or a stride. Symbols are interned: equal products have equal numbers, so a
//! leaf stays sixteen bytes and comparing two of them is comparing numbers.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{OnceLock, RwLock};

use super::error::{Class, LayoutError};

/// The most factors of all different products together that a process may name.
const MOST_FACTORS: usize = 1 << 20;

/// The most names in a product, those inside divisions too.
const MOST_NAMES: usize = 64;

/// The most divisions inside each other.
const MOST_NESTED: usize = 4;

/// A product of atoms, by number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Symbol(u32);

/// A factor of a symbolic product.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Atom {
    /// A run-time extent that is a multiple of `divisor`.
    Name { name: String, divisor: i64 },
    /// `ceil_div(factor * symbol, by)`.
    CeilDiv { factor: i64, symbol: Symbol, by: i64 },
}

impl Atom {
    /// The order of factors in a product: by what they say, and not by their numbers, which depend on what came first.
    fn order(&self, other: &Atom) -> Ordering {
        match (self, other) {
            (Atom::CeilDiv { factor: f, symbol: x, by: b }, Atom::CeilDiv { factor: g, symbol: y, by: c }) => {
                let inside = || {
                    let (x, y) = (x.atoms(), y.atoms());
                    let differ = x.iter().zip(&y).map(|(x, y)| x.order(y)).find(|order| order.is_ne());
                    differ.unwrap_or(x.len().cmp(&y.len()))
                };
                f.cmp(g).then_with(inside).then(b.cmp(c))
            }
            _ => self.cmp(other),
        }
    }
}

#[derive(Default)]
struct Table {
    products: Vec<Vec<Atom>>,
    numbers: BTreeMap<Vec<Atom>, u32>,
    factors: usize,
}

fn table() -> &'static RwLock<Table> {
    static TABLE: OnceLock<RwLock<Table>> = OnceLock::new();
    TABLE.get_or_init(RwLock::default)
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
    /// *Law.* `divisor()` divides every value that the extent may have.
    ///
    /// *Source.* The CuTe DSL's dynamic integers, `?{div=n}`.
    ///
    /// # Errors
    /// The name is not an identifier, the divisor is not positive, or too many symbols exist.
    ///
    /// ```
    /// use cutemplate::layout::Symbol;
    /// let m = Symbol::named("M", 8)?;
    /// assert_eq!(m.to_string(), "M{div=8}");
    /// assert_eq!(m.divisor(), 8);
    /// # Ok::<(), cutemplate::layout::LayoutError>(())
    /// ```
    pub fn named(name: &str, divisor: i64) -> Result<Symbol, LayoutError> {
        let identifier = name.len() <= 64
            && name.chars().next().is_some_and(|c| c.is_ascii_alphabetic())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !identifier || divisor < 1 {
            return Err(LayoutError::new("symbol", Class::Argument)
                .found(format!("name `{}`, divisor {divisor}", name.chars().take(64).collect::<String>()))
                .required("an identifier of at most 64 ASCII characters and a positive divisor"));
        }
        Symbol::intern(vec![Atom::Name { name: name.to_owned(), divisor }])
    }

    pub(crate) fn intern(mut atoms: Vec<Atom>) -> Result<Symbol, LayoutError> {
        atoms.sort_by(Atom::order);
        if let Ok(table) = table().read()
            && let Some(&id) = table.numbers.get(&atoms)
        {
            return Ok(Symbol(id));
        }
        let mut table = match table().write() {
            Ok(table) => table,
            // A panic elsewhere cannot leave the table half written: an insertion is its last step.
            Err(poisoned) => poisoned.into_inner(),
        };
        if let Some(&id) = table.numbers.get(&atoms) {
            return Ok(Symbol(id));
        }
        let id = table.products.len();
        let factors = table.factors + atoms.len();
        if factors > MOST_FACTORS {
            return Err(LayoutError::new("symbol", Class::Limit)
                .found(format!("{id} different symbolic products of {factors} factors"))
                .required(format!("at most {MOST_FACTORS} factors in one process")));
        }
        table.factors = factors;
        table.products.push(atoms.clone());
        table.numbers.insert(atoms, id as u32);
        Ok(Symbol(id as u32))
    }

    /// `ceil_div(factor * symbol, by)` as one more name; one division after another is one by the product.
    pub(crate) fn ceil_div(factor: i64, symbol: Symbol, by: i64) -> Result<Symbol, LayoutError> {
        if let ([Atom::CeilDiv { factor: inner, symbol, by: first }], 1) = (symbol.atoms().as_slice(), factor) {
            return Symbol::ceil_div(*inner, *symbol, super::error::mul(*first, by)?);
        }
        if symbol.nesting() >= MOST_NESTED {
            return Err(LayoutError::new("symbol", Class::Limit)
                .found(format!("ceil_div({factor}*{symbol},{by})"))
                .required(format!("at most {MOST_NESTED} divisions inside each other")));
        }
        Symbol::intern(vec![Atom::CeilDiv { factor, symbol, by }])
    }

    /// How many divisions stand inside each other.
    fn nesting(self) -> usize {
        let inside = |atom: &Atom| match atom {
            Atom::Name { .. } => 0,
            Atom::CeilDiv { symbol, .. } => 1 + symbol.nesting(),
        };
        self.atoms().iter().map(inside).max().unwrap_or(0)
    }

    pub(crate) fn atoms(self) -> Vec<Atom> {
        let read = table().read();
        let table = match &read {
            Ok(table) => table,
            Err(poisoned) => poisoned.get_ref(),
        };
        table.products.get(self.0 as usize).cloned().unwrap_or_default()
    }

    /// An integer that divides every value that this product can take.
    #[must_use]
    pub fn divisor(self) -> i64 {
        self.atoms().iter().fold(1i64, |known, atom| match atom {
            Atom::Name { divisor, .. } => known.checked_mul(*divisor).unwrap_or(known),
            Atom::CeilDiv { factor, symbol, by } => {
                let whole = factor.checked_mul(symbol.divisor()).unwrap_or(1);
                if whole % by == 0 { known.checked_mul(whole / by).unwrap_or(known) } else { known }
            }
        })
    }

    /// The product of two symbols.
    ///
    /// *Law.* `divisor()` of the product is the product of the divisors, as far as that fits in 64 bits.
    ///
    /// *Source.* The CuTe DSL's dynamic integers, `?{div=n}`.
    ///
    /// # Errors
    /// Too many symbols exist.
    ///
    /// ```
    /// use cutemplate::layout::Symbol;
    /// let product = Symbol::named("M", 8)?.times(Symbol::named("N", 4)?)?;
    /// assert_eq!((product.to_string(), product.divisor()), ("M{div=8}*N{div=4}".into(), 32));
    /// # Ok::<(), cutemplate::layout::LayoutError>(())
    /// ```
    pub fn times(self, other: Symbol) -> Result<Symbol, LayoutError> {
        let mut atoms = self.atoms();
        atoms.extend(other.atoms());
        let names = names(&atoms);
        if names > MOST_NAMES {
            return Err(LayoutError::new("symbol", Class::Limit)
                .found(format!("a product of {names} extents"))
                .required(format!("at most {MOST_NAMES}")));
        }
        Symbol::intern(atoms)
    }
}

/// The number of names that stand in the text of a product.
fn names(atoms: &[Atom]) -> usize {
    let inside = |atom: &Atom| match atom {
        Atom::Name { .. } => 1,
        Atom::CeilDiv { symbol, .. } => names(&symbol.atoms()),
    };
    atoms.iter().map(inside).sum()
}

impl fmt::Display for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, atom) in self.atoms().iter().enumerate() {
            if i > 0 {
                f.write_str("*")?;
            }
            match atom {
                Atom::Name { name, divisor: 1 } => f.write_str(name)?,
                Atom::Name { name, divisor } => write!(f, "{name}{{div={divisor}}}")?,
                Atom::CeilDiv { factor: 1, symbol, by } => write!(f, "ceil_div({symbol},{by})")?,
                Atom::CeilDiv { factor, symbol, by } => write!(f, "ceil_div({factor}*{symbol},{by})")?,
            }
        }
        Ok(())
    }
}
