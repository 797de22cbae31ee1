//! The arguments of one launch.

use core::marker::PhantomData;

use crate::dtype::Element;
use crate::plan::{Call, Operand};
use crate::recipe::{OfTensors, TensorArgs};
use crate::view::{Access, AnyView, Args, Space, View, ViewMut};

/// A recipe of a product whose A and B can be of a type.
pub trait Takes<T: Element>: OfTensors {}

/// A recipe of a product whose C and D can be of a type.
pub trait Gives<T: Element>: OfTensors {}

/// The call of [`ProductArgs`] for these operands.
pub(crate) fn call(rust_type: &str, operands: &[Operand], scalars: &[String]) -> Call {
    let lower = |operand: &Operand| operand.name.to_lowercase();
    let of = |operand: &&Operand| match (operand.name, operand.access) {
        ("A" | "B" | "D", _) => None,
        ("C", _) => Some(".c(c)".to_owned()),
        ("ScaleD", _) => Some(format!(".scale_d({})", lower(operand))),
        ("Offsets" | "Counts", _) => Some(format!(".groups({})", lower(operand))),
        ("Gather" | "Scatter", _) => Some(format!(".{0}({0})", lower(operand))),
        (_, Access::Write | Access::ReadWrite) => Some(format!(".e({})", lower(operand))),
        (_, Access::Read) => Some(format!(".aux({})", lower(operand))),
    };
    let others: String = operands.iter().filter_map(|operand| of(&operand)).collect();
    Call {
        views: format!("{rust_type}Args::new(a, b, d){others}"),
        scalars: if scalars.is_empty() { String::new() } else { format!(".scalars([{}])", scalars.join(", ")) },
    }
}

/// The arguments of one launch: A, B, C, auxiliary tensors, D, and the values of the run-time scalars.
///
/// ```
/// use cutemplate::recipe::sgemm::SgemmArgs;
/// use cutemplate::view::{View, ViewMut};
///
/// let (a, b, mut d) = ([1.0_f32; 6], [1.0_f32; 12], [0.0_f32; 8]);
/// let args = SgemmArgs::new(View::host(&a, [2, 3], 3), View::host(&b, [3, 4], 4), ViewMut::host(&mut d, [2, 4], 4))
///     .c_in_place()
///     .scalars([1.0, 0.0]);
/// # drop(args);
/// ```
#[derive(Debug)]
pub struct ProductArgs<'a, R, S: Space> {
    args: TensorArgs<'a, S>,
    recipe: PhantomData<R>,
}

impl<'a, R: OfTensors, S: Space> ProductArgs<'a, R, S> {
    /// A `(M,K)`, B `(K,N)` and D `(M,N)`.
    pub fn new<T: Element, U: Element, D: Element>(a: View<'a, T, S>, b: View<'a, U, S>, d: ViewMut<'a, D, S>) -> Self
    where
        R: Takes<T> + Takes<U> + Gives<D>,
    {
        Self { args: TensorArgs::new().input(a).input(b).output(d), recipe: PhantomData }
    }

    /// C, `(M,N)`, in memory of its own.
    #[must_use]
    pub fn c<D: Element>(self, c: View<'a, D, S>) -> Self
    where
        R: Gives<D>,
    {
        self.aux(c)
    }

    /// C is what D holds before the launch.
    #[must_use]
    pub fn c_in_place(self) -> Self {
        let d = self.args.outputs() - 1;
        Self { args: self.args.input_in_place(d), ..self }
    }

    /// The next auxiliary tensor, `(M,N)`; after C, where the epilogue reads C.
    #[must_use]
    pub fn aux<T: Element>(self, aux: View<'a, T, S>) -> Self {
        Self { args: self.args.input(aux), ..self }
    }

    /// E, `(M,N)`: where the epilogue has a second output.
    ///
    /// ```
    /// use cutemplate::recipe::gemm::GemmArgs;
    /// use cutemplate::view::{View, ViewLayout, ViewMut};
    ///
    /// // `gelu(a), a`: D, and what it was made of.
    /// let (a, b, mut d, mut e) = ([1.0_f32; 6], [1.0_f32; 12], [0.0_f32; 8], [0.0_f32; 8]);
    /// let b = View::host_strided(&b, ViewLayout::strided(&[3, 4], &[1, 3]).expect("few elements"));
    /// let args = GemmArgs::new(View::host(&a, [2, 3], 3), b, ViewMut::host(&mut d, [2, 4], 4)).e(ViewMut::host(&mut e, [2, 4], 4));
    /// # drop(args);
    /// ```
    #[must_use]
    pub fn e<E: Element>(self, e: ViewMut<'a, E, S>) -> Self
    where
        R: Gives<E>,
    {
        Self { args: self.args.output_ahead(e), ..self }
    }

    /// The scales of a quantised D, `(M,N/128)`.
    ///
    /// ```
    /// use cutemplate::dtype::E4m3;
    /// use cutemplate::recipe::gemm::GemmArgs;
    /// use cutemplate::view::{View, ViewLayout, ViewMut};
    ///
    /// // D is 2 x 200: each row has two scales.
    /// let (a, b, mut d, mut scales) = ([E4m3(0); 32], [E4m3(0); 3200], [E4m3(0); 400], [0.0_f32; 4]);
    /// let b = View::host_strided(&b, ViewLayout::strided(&[16, 200], &[1, 16]).expect("few elements"));
    /// let args = GemmArgs::new(View::host(&a, [2, 16], 16), b, ViewMut::host(&mut d, [2, 200], 200))
    ///     .scale_d(ViewMut::host(&mut scales, [2, 2], 2));
    /// # drop(args);
    /// ```
    #[must_use]
    pub fn scale_d(self, scales: ViewMut<'a, f32, S>) -> Self {
        Self { args: self.args.output_ahead(scales), ..self }
    }

    /// The end of each group of rows, or how many rows each has; after all auxiliary tensors.
    ///
    /// ```
    /// use cutemplate::recipe::gemm::GemmArgs;
    /// use cutemplate::view::{View, ViewLayout, ViewMut};
    ///
    /// // Two groups, of one row and of two; each has a 4 x 4 matrix of B, contiguous along K.
    /// let (a, b, mut d) = ([1.0_f32; 12], [1.0_f32; 32], [0.0_f32; 12]);
    /// let b = View::host_strided(&b, ViewLayout::strided(&[4, 4, 2], &[1, 4, 16]).expect("few elements"));
    /// let ends = View::host_strided(&[1, 3], ViewLayout::strided(&[2], &[1]).expect("few elements"));
    /// let args = GemmArgs::new(View::host(&a, [3, 4], 4), b, ViewMut::host(&mut d, [3, 4], 4)).groups(ends);
    /// # drop(args);
    /// ```
    #[must_use]
    pub fn groups(self, ends: View<'a, i32, S>) -> Self {
        Self { args: self.args.input(ends), ..self }
    }

    /// The row of A that each row of the product reads; after the groups.
    ///
    /// ```
    /// use cutemplate::recipe::gemm::GemmArgs;
    /// use cutemplate::view::{View, ViewLayout, ViewMut};
    ///
    /// // Both rows of A twice, in another order.
    /// let (a, b, mut d) = ([1.0_f32; 8], [1.0_f32; 16], [0.0_f32; 16]);
    /// let b = View::host_strided(&b, ViewLayout::strided(&[4, 4], &[1, 4]).expect("few elements"));
    /// let rows = View::host_strided(&[0, 1, 1, 0], ViewLayout::strided(&[4], &[1]).expect("few elements"));
    /// let args = GemmArgs::new(View::host(&a, [2, 4], 4), b, ViewMut::host(&mut d, [4, 4], 4)).gather(rows);
    /// # drop(args);
    /// ```
    #[must_use]
    pub fn gather(self, rows: View<'a, i32, S>) -> Self {
        Self { args: self.args.input(rows), ..self }
    }

    /// The row of D that each row of the product is; after the rows of A.
    #[must_use]
    pub fn scatter(self, rows: View<'a, i32, S>) -> Self {
        Self { args: self.args.input(rows), ..self }
    }

    /// The values of the run-time scalars, in order.
    #[must_use]
    pub fn scalars(self, scalars: impl IntoIterator<Item = f64>) -> Self {
        Self { args: scalars.into_iter().fold(self.args, TensorArgs::scalar), ..self }
    }
}

impl<R: OfTensors, S: Space> Args<R, S> for ProductArgs<'_, R, S> {
    fn views(&mut self) -> Vec<AnyView<'_, S>> {
        Args::<R, S>::views(&mut self.args)
    }

    fn scalars(&self) -> Vec<f64> {
        Args::<R, S>::scalars(&self.args)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe::Gemm;
    use crate::view::HostMemory;

    /// Views come in the order of the operands: inputs, E, D. C in place is D, whether E was given before or after it.
    #[test]
    fn e_stands_ahead_of_d_and_c_in_place_is_d() {
        let (a, b, mut d, mut e) = ([1.0_f32; 6], [1.0_f32; 12], [0.0_f32; 8], [0.0_f32; 8]);
        let at = [a.as_ptr(), b.as_ptr(), d.as_ptr(), e.as_ptr(), d.as_ptr()].map(|address| address as u64);
        for e_first in [false, true] {
            let args = ProductArgs::<Gemm, HostMemory>::new(
                View::host(&a, [2, 3], 3),
                View::host(&b, [3, 4], 4),
                ViewMut::host(&mut d, [2, 4], 4),
            );
            let second = ViewMut::host(&mut e, [2, 4], 4);
            let mut args = if e_first { args.e(second).c_in_place() } else { args.c_in_place().e(second) };
            let views = Args::<Gemm, HostMemory>::views(&mut args);
            assert_eq!(views.iter().map(|view| view.raw().ptr).collect::<Vec<_>>(), at, "{e_first}");
        }
    }
}
