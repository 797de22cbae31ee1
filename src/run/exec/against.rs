//! A launch whose outputs are compared, element by element, with what they have to be.

use core::fmt;

use super::extent::Extent;
use super::job::Job;
use super::{Error, Kernel};
use crate::diagnostic::debug_as_display;
use crate::expr::Accept;
use crate::plan::{Binding, BoundTensor};
use crate::tensor::{GuardReport, coordinate_at};
use crate::verify::{Expected, Mismatch, Verdict, unwritten};
use crate::view::{Access, Args, HostMemory, ViewRef};

/// Outputs of a launch that are not what they have to be.
#[derive(Clone, PartialEq)]
pub struct Wrong {
    /// Each output that is wrong, by its name.
    pub outputs: Vec<(String, Verdict)>,
}

debug_as_display!(Wrong);

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (name, verdict)) in self.outputs.iter().enumerate() {
            write!(f, "{}{name}: {verdict}", if at == 0 { "" } else { "\n" })?;
        }
        Ok(())
    }
}

impl core::error::Error for Wrong {}

impl<R> Kernel<R> {
    /// Runs the kernel and compares every element of every tensor that it writes. `expected` gives, for the name of a tensor and a
    /// coordinate, the value of the element, and the most that a right kernel may differ from it before it is rounded to the element's
    /// type; 0 where there is one value.
    ///
    /// The elements of a tensor that is only written are filled with wrong ones before, so that one that the kernel leaves out is found.
    ///
    /// ```no_run
    /// # fn check<R>(kernel: &cutemplate::exec::Kernel<R>, args: impl cutemplate::view::Args<R, cutemplate::view::HostMemory>, x: &[f32])
    /// # -> Result<(), cutemplate::exec::Error> {
    /// // y(i) = 2 * x(i), exactly.
    /// kernel.check_against(args, |_, at| (2.0 * f64::from(x[at[0] as usize]), 0.0))
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Kernel::launch`]; [`Error::Wrong`], where an element is wrong, or was never written.
    pub fn check_against(
        &self,
        mut args: impl Args<R, HostMemory>,
        expected: impl Fn(&str, &[i64]) -> (f64, f64),
    ) -> Result<(), Error> {
        let scalars = args.scalars();
        let views = args.views();
        let binding = self.bind(&views, &scalars)?;
        let accept = |name: &str, at: &[i64]| {
            let (value, error) = expected(name, at);
            Accept::within(value, error)
        };
        // SAFETY: as for `Kernel::report`.
        let found = unsafe {
            written(&binding).filter(|tensor| !is_read(tensor, &binding)).for_each(|tensor| fill(tensor, &accept));
            let extents: Vec<Extent> = binding.tensors().iter().map(Extent::of).collect();
            let report = self.program().run_on(&Job::from(&binding), &extents)?;
            if !report.is_clean() {
                return Err(Error::Verdict(Box::new(report)));
            }
            written(&binding).map(|tensor| (tensor.name.to_owned(), compare(tensor, &accept)))
        };
        let outputs: Vec<_> = found.filter(|(_, verdict)| !verdict.is_right()).collect();
        drop(views);
        if outputs.is_empty() { Ok(()) } else { Err(Error::Wrong(Box::new(Wrong { outputs }))) }
    }
}

fn written(binding: &Binding) -> impl Iterator<Item = &BoundTensor> {
    binding.tensors().iter().filter(|tensor| tensor.view.access.writes())
}

/// Whether its contents are read: by itself, or by an input in its place.
fn is_read(tensor: &BoundTensor, binding: &Binding) -> bool {
    let has_its_place = |other: &BoundTensor| other.view.access.reads() && other.view.ptr == tensor.view.ptr;
    binding.tensors().iter().any(has_its_place)
}

/// The coordinates of a tensor in row-major order, with the address of each element.
fn elements(view: &ViewRef) -> impl Iterator<Item = (Vec<i64>, *mut u8)> + use<> {
    let (shape, stride) = (view.layout.shape().to_vec(), view.layout.stride().to_vec());
    let (ptr, item) = (view.ptr, view.dtype.bytes().0);
    (0..view.layout.size().unwrap_or(0)).map(move |index| {
        let at = coordinate_at(&shape, index);
        let offset: i64 = at.iter().zip(&stride).map(|(at, stride)| at * stride).sum();
        let address = ptr + offset.unsigned_abs() * item;
        (at, core::ptr::with_exposed_provenance_mut(address as usize))
    })
}

/// Fills a tensor.
///
/// # Safety
/// Its elements are there, and nobody else uses them.
unsafe fn fill(tensor: &BoundTensor, accept: &dyn Fn(&str, &[i64]) -> Accept) {
    let view = &tensor.view;
    for (at, element) in elements(view) {
        let bits = unwritten(view.dtype, &accept(tensor.name, &at)).to_le_bytes();
        // SAFETY: the element is there, by the contract of this function, and no larger than its bits.
        unsafe { core::ptr::copy_nonoverlapping(bits.as_ptr(), element, view.dtype.bytes().0 as usize) };
    }
}

/// Compares each element.
///
/// # Safety
/// Its elements are there, and nobody else writes them.
unsafe fn compare(tensor: &BoundTensor, accept: &dyn Fn(&str, &[i64]) -> Accept) -> Verdict {
    let (view, dtype) = (&tensor.view, tensor.view.dtype);
    let mut verdict = Verdict::new(view.layout.size().unwrap_or(0), GuardReport::default());
    for (at, element) in elements(view) {
        let mut bytes = [0_u8; 8];
        // SAFETY: the element is there, by the contract of this function, and no larger than its bits.
        unsafe { core::ptr::copy_nonoverlapping(element, bytes.as_mut_ptr(), dtype.bytes().0 as usize) };
        let (found, accept) = (u64::from_le_bytes(bytes), accept(tensor.name, &at));
        if accept.accepts(dtype, found) {
            continue;
        }
        let unwritten = view.access == Access::Write && found == unwritten(dtype, &accept);
        verdict.mismatches += 1;
        verdict.unwritten += u64::from(unwritten);
        if verdict.first.len() == Verdict::KEPT {
            continue;
        }
        let expected = Expected::of(&accept, dtype);
        let coordinate = at.iter().map(|at| at.unsigned_abs()).collect();
        verdict.first.push(Mismatch { coordinate, unwritten, found, expected, inputs: Vec::new(), dtype });
    }
    verdict
}
