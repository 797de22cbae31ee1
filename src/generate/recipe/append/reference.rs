//! What pages and queries must be: two products and their sum for each rotated element, everything else as it was.

use super::launch::PAGE;
use super::{Append, Pairs};
use crate::reference::{At, Each};

/// Half the distance between 1 and the next f32, and the smallest f32.
const U: f64 = 1.0 / 16_777_216.0;
const LEAST: f64 = 1.401_298_464_324_817e-45;

/// The number of an input.
struct Inputs {
    q: usize,
    cos: usize,
    sin: usize,
    /// The starts of sequences, where these lie one after the other.
    starts: Option<usize>,
    table: usize,
    lengths: usize,
    /// Of keys, and then of values.
    scales: Option<usize>,
}

impl Inputs {
    fn of(recipe: &Append) -> Self {
        let q = 2;
        let cos = q + usize::from(recipe.queries);
        let starts = cos + if recipe.rotary() > 0 { 2 } else { 0 };
        let table = starts + usize::from(recipe.varlen);
        let scales = recipe.is_narrow().then_some(table + 2);
        Self { q, cos, sin: cos + 1, starts: recipe.varlen.then_some(starts), table, lengths: table + 1, scales }
    }

    /// A number with its error, divided by the scale of a head: of a key, 0, or of a value, 1.
    fn scaled(&self, at: &At<'_>, (of, head): (usize, i64), (x, error): (f64, f64)) -> (f64, f64) {
        let Some(scales) = self.scales else { return (x, error) };
        let scale = at.input(scales + of, &[head]);
        // What is divided is an f32.
        let x = if (x as f32).is_finite() { x } else { f64::from(x as f32) };
        let quotient = x / scale;
        let error = error / scale.abs() + (U * (1.0 + U)) * (quotient.abs() + error / scale.abs()) + LEAST;
        (quotient, if error.is_finite() { error } else { 0.0 })
    }

    /// The new rows of each sequence, from the first to the one behind its last. Starts never go back.
    fn sequences(&self, at: &At<'_>) -> Vec<[i64; 2]> {
        let (batches, new) = (at.shape(self.lengths)[0], at.shape(0));
        let Some(starts) = self.starts else { return vec![[0, new[1]]; batches.unsigned_abs() as usize] };
        let start = |number| (at.input(starts, &[number]) as i64).clamp(0, new[0]);
        let further = |furthest: &mut i64, number| {
            *furthest = start(number).max(*furthest);
            Some(*furthest)
        };
        let all: Vec<i64> = (0..=batches).scan(0, further).collect();
        all.windows(2).map(|two| [two[0], two[1]]).collect()
    }

    /// The position of a sequence's new row i. Its last row has its last position.
    fn position(&self, at: &At<'_>, (batch, end): (i64, i64), i: i64) -> i64 {
        (at.input(self.lengths, &[batch]) as i64).max(0) - end + i
    }

    /// The new row that goes to a page's row, (batch, i), with its position.
    fn found(&self, at: &At<'_>, page: i64, row: i64) -> Option<(i64, i64, i64)> {
        let ([_, entries], rows) = (at.shape(self.table), *at.problem().get(PAGE)?) else { return None };
        let all = (0..).zip(self.sequences(at));
        let mut all = all.flat_map(|(batch, [begin, end])| {
            (begin..end).map(move |i| (batch, i, self.position(at, (batch, end), i)))
        });
        all.find(|(batch, _, position)| {
            let inside = *position >= 0 && position / rows < *entries && position % rows == row;
            inside && at.input(self.table, &[*batch, position / rows]) as i64 == page
        })
    }

    /// An element of a new row.
    fn element(&self, at: &At<'_>, input: usize, coordinate: [i64; 4]) -> f64 {
        at.input(input, &coordinate[usize::from(self.starts.is_some())..])
    }

    /// Element `d` of a row, rotated by its position.
    fn rotated(&self, recipe: &Append, at: &At<'_>, of: (usize, [i64; 3]), d: i64, position: i64) -> (f64, f64) {
        let (input, [batch, i, head]) = of;
        let element = |d: i64| self.element(at, input, [batch, i, head, d]);
        let rotary = i64::from(recipe.rotary());
        if d >= rotary {
            return (element(d), 0.0);
        }
        let (angle, other, is_first) = match recipe.pairs {
            Pairs::Half => (d % (rotary / 2), (d + rotary / 2) % rotary, d < rotary / 2),
            Pairs::Interleaved => (d / 2, d ^ 1, d % 2 == 0),
        };
        let position = position.clamp(0, at.shape(self.cos)[0] - 1);
        let [cos, sin] = [self.cos, self.sin].map(|input| at.input(input, &[position, angle]));
        let (own, added) = (element(d) * cos, element(other) * if is_first { -sin } else { sin });
        // A product past the largest f32 is infinite before it is added.
        let added = if (added as f32).is_finite() { added } else { f64::from(added as f32) };
        // The product that is added is rounded, and so is the sum.
        let error = U * (own.abs() + (2.0 + U) * added.abs()) + 2.0 * LEAST;
        (own + added, if error.is_finite() { error } else { 0.0 })
    }
}

pub(super) fn append(recipe: &Append) -> Each {
    let (inputs, of_values) = (Inputs::of(recipe), Inputs::of(recipe));
    let (keys, queries) = (recipe.clone(), recipe.clone());
    let each = Each::new()
        .output_where(move |at| {
            let [page, row, head, d] = at.coordinate() else { return None };
            let (batch, i, position) = inputs.found(at, *page, *row)?;
            let key = inputs.rotated(&keys, at, (0, [batch, i, *head]), *d, position);
            Some(inputs.scaled(at, (0, *head), key))
        })
        .output_where(move |at| {
            let [page, row, head, d] = at.coordinate() else { return None };
            let (batch, i, _) = of_values.found(at, *page, *row)?;
            Some(of_values.scaled(at, (1, *head), (of_values.element(at, 1, [batch, i, *head, *d]), 0.0)))
        });
    if !recipe.queries {
        return each;
    }
    let inputs = Inputs::of(recipe);
    each.output(move |at| {
        let [batches @ .., i, head, d] = at.coordinate() else { return (f64::NAN, 0.0) };
        let mut all = (0..).zip(inputs.sequences(at));
        let is_own = |(batch, [begin, end]): &(i64, [i64; 2])| match batches {
            [own] => batch == own,
            _ => (begin..end).contains(&i),
        };
        let Some((batch, [_, end])) = all.find(is_own) else { return (0.0, 0.0) };
        let position = inputs.position(at, (batch, end), *i);
        inputs.rotated(&queries, at, (inputs.q, [batch, *i, *head]), *d, position)
    })
}
