//! The arguments of one launch.

use crate::dtype::Element;
use crate::recipe::Gemm;
use crate::view::{AnyView, Args, Space, View, ViewMut};

/// The arguments of one launch: A, B and D.
///
/// ```
/// use cutemplate::recipe::gemm::GemmArgs;
/// use cutemplate::view::{View, ViewLayout, ViewMut};
/// use half::f16;
///
/// // A is 2 x 8, B is 8 x 4, contiguous along K.
/// let (a, b, mut d) = ([f16::ONE; 16], [f16::ONE; 32], [0.0_f32; 8]);
/// let by_columns = ViewLayout::strided(&[8, 4], &[1, 8]).expect("few elements");
/// let args = GemmArgs::new(View::host(&a, [2, 8], 8), View::host_strided(&b, by_columns), ViewMut::host(&mut d, [2, 4], 4));
/// # drop(args);
/// ```
#[derive(Debug)]
pub struct GemmArgs<'a, S: Space> {
    a: AnyView<'a, S>,
    b: AnyView<'a, S>,
    d: AnyView<'a, S>,
}

impl<'a, S: Space> GemmArgs<'a, S> {
    /// A `(M,K)`, B `(K,N)` and D `(M,N)`, of the types that the recipe has.
    pub fn new<T: Element, D: Element>(a: View<'a, T, S>, b: View<'a, T, S>, d: ViewMut<'a, D, S>) -> Self {
        Self { a: a.erase(), b: b.erase(), d: d.into_any() }
    }
}

impl<S: Space> Args<Gemm, S> for GemmArgs<'_, S> {
    fn views(&mut self) -> Vec<AnyView<'_, S>> {
        vec![self.a.reborrow(), self.b.reborrow(), self.d.reborrow()]
    }

    fn scalars(&self) -> Vec<f64> {
        Vec::new()
    }
}
