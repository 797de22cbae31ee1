//! Named integers that follow from each other.

use serde::{Deserialize, Serialize};

use super::Int;

/// A line of the computation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// The value of that number.
    Let(usize, Int),
    /// A condition, and the reason for it.
    Require(Int, String),
}

/// Named values. Each is computed from earlier ones.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Steps {
    /// The name of each value.
    pub names: Vec<String>,
    /// What is computed and required, in order.
    pub steps: Vec<Step>,
}

impl Steps {
    /// A value that is known before.
    pub fn input(&mut self, name: &str) -> Int {
        self.names.push(name.to_owned());
        Int::Value(self.names.len() - 1)
    }

    /// Computes a value.
    pub fn set(&mut self, name: &str, value: Int) -> Int {
        let at = self.input(name);
        if let Int::Value(index) = at {
            self.steps.push(Step::Let(index, value));
        }
        at
    }

    /// The last value of that name; 0 where there is none.
    pub fn find(&self, name: &str) -> Int {
        self.names.iter().rposition(|known| known == name).map_or(Int::Const(0), Int::Value)
    }

    /// The same among all values.
    pub fn value(&self, name: &str, values: &[i64]) -> Option<i64> {
        self.find(name).eval(values)
    }

    /// Refuses a launch for which it does not hold.
    pub fn require(&mut self, condition: Int, because: &str) {
        let holds = condition == Int::Const(1);
        let step = Step::Require(condition, because.to_owned());
        if !holds && !self.steps.contains(&step) {
            self.steps.push(step);
        }
    }

    /// All values, where the first are these; `None` where something that is required does not hold.
    pub fn eval(&self, inputs: &[i64]) -> Option<Vec<i64>> {
        let mut values = inputs.to_vec();
        values.resize(self.names.len(), 0);
        for step in &self.steps {
            match step {
                Step::Let(index, value) => *values.get_mut(*index)? = value.eval(&values)?,
                Step::Require(condition, _) => (condition.eval(&values)? != 0).then_some(())?,
            }
        }
        Some(values)
    }
}
