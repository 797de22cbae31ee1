//! Matrices as BLAS has them: columns are contiguous, and one that lies otherwise is turned.

use cutemplate::view::ViewRef;

/// A matrix of columns, and whether it is taken as its transpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stored {
    /// Whether the product takes its transpose.
    pub(super) turned: bool,
    /// As it is stored.
    pub(super) rows: i64,
    pub(super) cols: i64,
    /// Elements from one column to the next.
    pub(super) ld: i64,
    /// Elements from one matrix of a batch to the next.
    pub(super) batch: i64,
    pub(super) address: u64,
}

impl Stored {
    /// The matrix of a view, or with `transposed` its transpose; `None` where neither mode is contiguous.
    fn of(view: &ViewRef, transposed: bool) -> Option<Self> {
        let (shape, stride) = (view.layout.shape(), view.layout.stride());
        let (&[rows, cols], &[s0, s1]) = (shape.get(..2)?.first_chunk()?, stride.get(..2)?.first_chunk()?);
        let ((rows, s0), (cols, s1)) = if transposed { ((cols, s1), (rows, s0)) } else { ((rows, s0), (cols, s1)) };
        let (batch, address) = (stride.get(2).copied().unwrap_or(0), view.ptr);
        // The other stride of a single column says nothing.
        if s0 == 1 && (s1 >= rows || cols == 1) {
            Some(Self { turned: false, rows, cols, ld: s1.max(rows), batch, address })
        } else if s1 == 1 && (s0 >= cols || rows == 1) {
            Some(Self { turned: true, rows: cols, cols: rows, ld: s0.max(cols), batch, address })
        } else {
            None
        }
    }
}

/// `D = X @ Y` of columns: A @ B, or `D^T = B^T @ A^T` where D has rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Product {
    /// Whether it is the transpose that is computed.
    pub(super) transposed: bool,
    pub(super) x: Stored,
    pub(super) y: Stored,
    pub(super) d: Stored,
    /// Rows and columns of the product, the extent that is summed, and batches.
    pub(super) extents: [i64; 4],
}

impl Product {
    /// The product of views `(M,K)`, `(K,N)` and `(M,N)`, with an optional last mode L; `None` if BLAS cannot describe
    /// one of them.
    pub(super) fn of(a: &ViewRef, b: &ViewRef, d: &ViewRef) -> Option<Self> {
        let transposed = Stored::of(d, false)?.turned;
        let matrix = |view| Stored::of(view, transposed);
        let (x, y) = if transposed { (b, a) } else { (a, b) };
        let (x, y, d_stored) = (matrix(x)?, matrix(y)?, matrix(d)?);
        let extent = |view: &ViewRef, mode: usize| view.layout.shape().get(mode).copied().unwrap_or(1);
        let extents = [d_stored.rows, d_stored.cols, extent(a, 1), extent(d, 2)];
        Some(Self { transposed, x, y, d: d_stored, extents })
    }

    /// Another matrix `(M,N)` of the same product; `None` where it is contiguous along the other mode than D.
    pub(super) fn alike(&self, view: &ViewRef) -> Option<Stored> {
        Stored::of(view, self.transposed).filter(|stored| !stored.turned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutemplate::dtype::DType;
    use cutemplate::units::Elements;
    use cutemplate::view::{Access, ViewLayout};

    fn view(ptr: u64, shape: &[i64], stride: &[i64]) -> ViewRef {
        let layout = ViewLayout::strided(shape, stride).expect("few elements");
        ViewRef { dtype: DType::F16, ptr, available: Elements(1 << 20), layout, access: Access::Read }
    }

    #[test]
    fn rows_are_turned_products() {
        // A K-major, B K-major, D N-major: D^T = B^T @ A^T, where B^T has rows along K and is turned.
        let (a, b, d) = (view(1, &[3, 5], &[8, 1]), view(2, &[5, 7], &[1, 6]), view(3, &[3, 7], &[9, 1]));
        let product = Product::of(&a, &b, &d).expect("matrices");
        assert!(product.transposed);
        assert_eq!(product.extents, [7, 3, 5, 1]);
        assert_eq!(product.x, Stored { turned: true, rows: 5, cols: 7, ld: 6, batch: 0, address: 2 });
        assert_eq!(product.y, Stored { turned: false, rows: 5, cols: 3, ld: 8, batch: 0, address: 1 });
        assert_eq!(product.d, Stored { turned: false, rows: 7, cols: 3, ld: 9, batch: 0, address: 3 });
        assert_eq!(product.alike(&view(4, &[3, 7], &[7, 1])).map(|c| c.ld), Some(7));
        assert_eq!(product.alike(&view(4, &[3, 7], &[1, 3])), None);
    }

    #[test]
    fn columns_are_products_as_they_are() {
        let (a, b) = (view(1, &[3, 5, 2], &[1, 4, 20]), view(2, &[5, 7, 2], &[7, 1, 0]));
        let product = Product::of(&a, &b, &view(3, &[3, 7, 2], &[1, 3, 21])).expect("matrices");
        assert!(!product.transposed);
        assert_eq!(product.extents, [3, 7, 5, 2]);
        assert_eq!(product.x, Stored { turned: false, rows: 3, cols: 5, ld: 4, batch: 20, address: 1 });
        assert_eq!(product.y, Stored { turned: true, rows: 7, cols: 5, ld: 7, batch: 0, address: 2 });
    }

    #[test]
    fn single_rows_and_columns_are_matrices_and_gaps_in_both_modes_are_none() {
        let (a, b) = (view(1, &[1, 5], &[5, 1]), view(2, &[5, 1], &[1, 5]));
        let product = Product::of(&a, &b, &view(3, &[1, 1], &[1, 1])).expect("matrices");
        assert_eq!(product.extents, [1, 1, 5, 1]);
        // One row of A is a column of five, as a library copies best.
        assert_eq!((product.x.turned, product.x.rows, product.x.ld), (true, 5, 5));
        assert_eq!(Product::of(&view(1, &[3, 5], &[20, 2]), &b, &view(3, &[3, 1], &[1, 1])), None);
    }
}
