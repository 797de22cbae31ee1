//! Rows that an index names: those that a product reads of A, and those that it writes of D.

use super::product::Matrices;
use crate::dtype::DType;
use crate::expr::{Accept, ExprError, Outputs};
use crate::plan::{Accepted, Case, Cursor, InputElement, ReferenceError};
use crate::tensor::{Elements, Tensor};

/// The rows that an index names, of so many; none where it names no such row.
pub(super) fn named(index: &Tensor, of: i64) -> Vec<Option<usize>> {
    let row = |row: f64| (0.0..of as f64).contains(&row).then_some(row as usize);
    Elements::starting_at(index, 0).map(|(value, _)| row(value)).collect()
}

/// A product whose rows are rows of D that an index names.
pub(super) struct Scattered<'a> {
    matrices: Matrices<'a>,
    /// Of each row of D the row of the product, if it is one.
    rows: Vec<Option<usize>>,
    columns: u64,
}

impl<'a> Scattered<'a> {
    /// For D of the shape that the case says.
    pub(super) fn new(matrices: Matrices<'a>, index: &Tensor, case: &Case<'a, '_>) -> Result<Self, ReferenceError> {
        let shape = case.written.last().and_then(|shape| <[i64; 2]>::try_from(shape.as_slice()).ok());
        let [rows, columns] = shape.ok_or_else(|| case.unfit("rows of a D whose shape is not known"))?;
        let mut of_d = vec![None; rows.max(0) as usize];
        for (row, at) in named(index, rows).into_iter().enumerate() {
            if let Some(of) = at.and_then(|at| of_d.get_mut(at)) {
                *of = Some(row);
            }
        }
        Ok(Self { matrices, rows: of_d, columns: columns.unsigned_abs() })
    }
}

impl Accepted for Scattered<'_> {
    fn outputs(&self) -> usize {
        self.matrices.outputs()
    }

    fn shape(&self) -> Option<Vec<i64>> {
        Some(vec![self.rows.len() as i64, self.columns as i64])
    }

    fn grain(&self) -> u64 {
        self.matrices.grain()
    }

    fn starting_at(&self, index: u64) -> Box<dyn Cursor + '_> {
        Box::new(Rows { of: self, next: index, row: None })
    }
}

/// Row after row.
struct Rows<'a> {
    of: &'a Scattered<'a>,
    next: u64,
    /// The rest of the row, if the product has it.
    row: Option<Box<dyn Cursor + 'a>>,
}

impl Cursor for Rows<'_> {
    fn accepted(&mut self) -> Result<Outputs, ExprError> {
        let columns = self.of.columns.max(1);
        let (row, column) = (self.next / columns, self.next % columns);
        if column == 0 || self.row.is_none() {
            let row = self.of.rows.get(row as usize).copied().flatten();
            self.row = row.map(|row| self.of.matrices.starting_at(row as u64 * columns + column));
        }
        self.next += 1;
        // It keeps the mark of what was never written.
        let none = || Ok((0..self.of.outputs()).map(|_| Accept::within(f64::NAN, 0.0)).collect());
        self.row.as_mut().map_or_else(none, |row| row.accepted())
    }

    fn is_written(&self) -> bool {
        self.row.as_ref().is_some_and(|row| row.is_written())
    }

    fn inputs(&self) -> Vec<InputElement> {
        self.row.as_ref().map_or_else(Vec::new, |row| row.inputs())
    }

    fn carries(&self, dtype: DType, bits: u64) -> bool {
        self.row.as_ref().is_none_or(|row| row.carries(dtype, bits))
    }
}
