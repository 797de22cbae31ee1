//! The arguments of one launch.

use crate::dtype::Element;
use crate::plan::{Call, Draft, Operand};
use crate::recipe::Recipe;
use crate::view::{Access, AnyView, Args, Space, View, ViewLayout, ViewMut};

impl Draft {
    /// The same with the call of [`TensorArgs`].
    #[must_use]
    pub fn of_tensors(self) -> Self {
        let call = |operand: &Operand| {
            let verb = if operand.access == Access::Write { "output" } else { "input" };
            format!(".{verb}({})", operand.name.to_lowercase())
        };
        let views = self.operands.iter().map(call).collect::<String>();
        let scalars = self.scalars.iter().map(|name| format!(".scalar({name})")).collect();
        Self { call: Call { views: format!("TensorArgs::new(){views}"), scalars }, ..self }
    }
}

/// A recipe that takes [`TensorArgs`]: tensors one after the other, each of the type that it has.
pub trait OfTensors: Recipe {}

/// The arguments of one launch: inputs in the order a, b, .., outputs, and the values of the run-time scalars.
///
/// ```
/// use cutemplate::recipe::TensorArgs;
/// use cutemplate::view::{View, ViewMut};
///
/// let (a, mut y) = ([1.0_f32; 6], [0.0_f32; 6]);
/// let args = TensorArgs::new()
///     .input(View::host(&a, [2, 3], 3))
///     .output(ViewMut::host(&mut y, [2, 3], 3))
///     .scalar(0.5);
/// # drop(args);
/// ```
#[derive(Debug)]
pub struct TensorArgs<'a, S: Space> {
    inputs: Vec<Input<'a, S>>,
    outputs: Vec<AnyView<'a, S>>,
    scalars: Vec<f64>,
}

#[derive(Debug)]
enum Input<'a, S: Space> {
    View(AnyView<'a, S>),
    /// The output of that number.
    InPlace(usize),
}

impl<S: Space> Default for TensorArgs<'_, S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<'a, S: Space> TensorArgs<'a, S> {
    /// No arguments yet.
    pub fn new() -> Self {
        Self { inputs: Vec::new(), outputs: Vec::new(), scalars: Vec::new() }
    }

    /// The next input.
    #[must_use]
    pub fn input<T: Element>(mut self, view: View<'a, T, S>) -> Self {
        self.inputs.push(Input::View(view.erase()));
        self
    }

    /// The next input is what output number `output` holds before the launch.
    #[must_use]
    pub fn input_in_place(mut self, output: usize) -> Self {
        self.inputs.push(Input::InPlace(output));
        self
    }

    /// The next output.
    #[must_use]
    pub fn output<T: Element>(mut self, view: ViewMut<'a, T, S>) -> Self {
        self.outputs.push(view.into_any());
        self
    }

    /// The next outputs, which lie in one tensor: each is a layout from an element on. The launch refuses parts that share elements.
    ///
    /// ```
    /// use cutemplate::recipe::TensorArgs;
    /// use cutemplate::view::{ViewLayout, ViewMut};
    ///
    /// // Even and odd columns of 2 rows of 6.
    /// let (mut x, columns) = ([0.0_f32; 12], ViewLayout::strided(&[2, 3], &[6, 2]).unwrap());
    /// let args = TensorArgs::new().output_parts(ViewMut::host(&mut x, [2, 6], 6), &[(0, columns), (1, columns)]);
    /// # drop(args);
    /// ```
    #[must_use]
    pub fn output_parts<T: Element>(mut self, view: ViewMut<'a, T, S>, parts: &[(u64, ViewLayout)]) -> Self {
        self.outputs.extend(view.into_any().parts(parts));
        self
    }

    /// An output ahead of those that there are, which keep their numbers where inputs are in place.
    pub(crate) fn output_ahead<T: Element>(mut self, view: ViewMut<'a, T, S>) -> Self {
        for input in &mut self.inputs {
            if let Input::InPlace(output) = input {
                *output += 1;
            }
        }
        self.outputs.insert(0, view.into_any());
        self
    }

    /// How many outputs there are.
    pub(crate) fn outputs(&self) -> usize {
        self.outputs.len()
    }

    /// The value of the next run-time scalar.
    #[must_use]
    pub fn scalar(mut self, value: f64) -> Self {
        self.scalars.push(value);
        self
    }
}

impl<R: OfTensors, S: Space> Args<R, S> for TensorArgs<'_, S> {
    fn views(&mut self) -> Vec<AnyView<'_, S>> {
        let aliases: Vec<Option<AnyView<'_, S>>> = self
            .inputs
            .iter()
            .map(|input| match input {
                Input::View(_) => None,
                Input::InPlace(output) => self.outputs.get(*output).map(|output| output.alias(Access::Read)),
            })
            .collect();
        let inputs = self.inputs.iter_mut().zip(aliases).filter_map(|(input, alias)| match input {
            Input::View(view) => Some(view.reborrow()),
            Input::InPlace(_) => alias,
        });
        inputs.chain(self.outputs.iter_mut().map(AnyView::reborrow)).collect()
    }

    fn scalars(&self) -> Vec<f64> {
        self.scalars.clone()
    }
}
