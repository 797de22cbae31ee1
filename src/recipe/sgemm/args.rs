//! The arguments of one launch.

use crate::dtype::Element;
use crate::recipe::Sgemm;
use crate::view::{Access, AnyView, Args, Space, View, ViewMut};

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
pub struct SgemmArgs<'a, S: Space> {
    a: AnyView<'a, S>,
    b: AnyView<'a, S>,
    /// C and the auxiliary tensors; `None` is what D holds before the launch.
    read: Vec<Option<AnyView<'a, S>>>,
    d: AnyView<'a, S>,
    scalars: Vec<f64>,
}

impl<'a, S: Space> SgemmArgs<'a, S> {
    /// A `(M,K)`, B `(K,N)` and D `(M,N)`.
    pub fn new(a: View<'a, f32, S>, b: View<'a, f32, S>, d: ViewMut<'a, f32, S>) -> Self {
        Self { a: a.erase(), b: b.erase(), read: Vec::new(), d: d.into_any(), scalars: Vec::new() }
    }

    /// C, `(M,N)`, in memory of its own.
    #[must_use]
    pub fn c(self, c: View<'a, f32, S>) -> Self {
        self.aux(c)
    }

    /// C is what D holds before the launch.
    #[must_use]
    pub fn c_in_place(mut self) -> Self {
        self.read.push(None);
        self
    }

    /// The next auxiliary tensor, `(M,N)`; after C, where the epilogue reads C.
    #[must_use]
    pub fn aux<T: Element>(mut self, aux: View<'a, T, S>) -> Self {
        self.read.push(Some(aux.erase()));
        self
    }

    /// The values of the run-time scalars, in order.
    #[must_use]
    pub fn scalars(mut self, scalars: impl IntoIterator<Item = f64>) -> Self {
        self.scalars = scalars.into_iter().collect();
        self
    }
}

impl<S: Space> Args<Sgemm, S> for SgemmArgs<'_, S> {
    fn views(&mut self) -> Vec<AnyView<'_, S>> {
        let in_place = self.d.raw();
        let read = self.read.iter_mut().map(|view| match view {
            Some(view) => view.reborrow(),
            None => AnyView::alias(in_place, Access::Read),
        });
        let inputs = [self.a.reborrow(), self.b.reborrow()].into_iter().chain(read);
        inputs.chain([self.d.reborrow()]).collect()
    }

    fn scalars(&self) -> Vec<f64> {
        self.scalars.clone()
    }
}
