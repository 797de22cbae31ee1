//! What cuBLASLt has that is the same as a plan's epilogue.

use core::fmt;

use cutemplate::expr::{Term, Terms};
use cutemplate::plan::{ModeStride, Plan};

/// What cuBLASLt's activations are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Activation {
    None,
    Relu,
    /// cuBLASLt has the approximation by tanh alone.
    GeluTanh,
}

/// A factor of a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scale {
    One,
    /// A run-time scalar, by number from 0.
    Scalar(usize),
}

impl Scale {
    pub(super) fn value(self, scalars: &[f64]) -> f32 {
        match self {
            Scale::One => 1.0,
            Scale::Scalar(index) => scalars.get(index).copied().unwrap_or(1.0) as f32,
        }
    }
}

/// `activation(alpha * A @ B + beta * C + bias)`: what cuBLASLt computes of one product. The bias is one vector, for the rows of D
/// as columns have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Epilogue {
    pub(super) activation: Activation,
    pub(super) alpha: Scale,
    /// The operand C, by number from 0, and its factor.
    pub(super) c: Option<(usize, Scale)>,
    /// The operand that is one vector for all columns.
    pub(super) bias: Option<usize>,
}

impl Epilogue {
    /// D = A @ B.
    pub(super) const PLAIN: Self = Self { activation: Activation::None, alpha: Scale::One, c: None, bias: None };

    /// The plan's own, or why cuBLASLt does not have it.
    pub(super) fn of(plan: &Plan) -> Result<Self, &'static str> {
        let Some(product) = plan.product() else { return Err("it is not a product") };
        let Some(Terms { activation, sum }) = product.epilogue().function().terms() else {
            return Err("cuBLASLt has activations of alpha * A @ B + beta * C + bias");
        };
        let activation = match activation {
            None => Activation::None,
            Some("relu") => Activation::Relu,
            Some("gelu_tanh") => Activation::GeluTanh,
            Some("gelu") => return Err("cuBLASLt's gelu is the approximation by tanh, which is gelu_tanh here"),
            Some(_) => return Err("cuBLASLt's activations are relu and gelu_tanh"),
        };
        let mut found = Self { activation, ..Self::PLAIN };
        let (mut sums, mut others) = (0, Vec::new());
        for Term { input, scalar } in sum {
            let scale = scalar.map_or(Scale::One, Scale::Scalar);
            // A and B are one input of the function and two operands; C is an operand where it is read.
            let operand = input + 1 - usize::from(input > 1 && !product.has_c());
            match input {
                0 => (found.alpha, sums) = (scale, sums + 1),
                _ => others.push((operand, scale)),
            }
        }
        if sums != 1 {
            return Err("A @ B is not one term of the sum");
        }
        found.place(plan, &others)
    }

    /// The same with the tensors that are added to A @ B as C and bias.
    fn place(mut self, plan: &Plan, others: &[(usize, Scale)]) -> Result<Self, &'static str> {
        let operands = plan.operands();
        let Some(d) = operands.last() else { return Err("it is not a product") };
        // Where D has rows its transpose is computed, whose rows are D's columns.
        let (unit, all) = if d.strides.first() == Some(&ModeStride::Unit) { (0, 1) } else { (1, 0) };
        for (index, scale) in others {
            let Some(operand) = operands.get(*index) else { return Err("it is not a product") };
            let at = |mode: usize| operand.strides.get(mode).copied();
            let one_vector = at(unit) == Some(ModeStride::Unit) && at(all) == Some(ModeStride::Broadcast);
            if operand.dtype != d.dtype {
                return Err("what cuBLASLt adds has the type of D");
            }
            if one_vector && *scale == Scale::One && self.bias.is_none() {
                self.bias = Some(*index);
            } else if operand.strides == d.strides && self.c.is_none() {
                self.c = Some((*index, *scale));
            } else {
                return Err(
                    "cuBLASLt adds one matrix that lies as D does, and one vector along the mode where D is contiguous",
                );
            }
        }
        Ok(self)
    }
}

impl fmt::Display for Epilogue {
    /// `relu(alpha * A @ B + beta * C + bias)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scaled =
            |scale: &Scale, name: &str| if *scale == Scale::One { String::new() } else { format!("{name} * ") };
        let mut sum = format!("{}A @ B", scaled(&self.alpha, "alpha"));
        if let Some((_, beta)) = &self.c {
            sum += &format!(" + {}C", scaled(beta, "beta"));
        }
        if self.bias.is_some() {
            sum += " + bias";
        }
        match self.activation {
            Activation::None => f.write_str(&sum),
            Activation::Relu => write!(f, "relu({sum})"),
            Activation::GeluTanh => write!(f, "gelu_tanh({sum})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutemplate::arch::Targets;
    use cutemplate::recipe::product::Major;
    use cutemplate::recipe::{Gemm, Recipe};

    fn of(epilogue: &str, aux: &[&str], d: Major) -> Result<Epilogue, &'static str> {
        let aux = aux.iter().map(|spec| spec.parse().expect("a tensor")).collect();
        let recipe = Gemm { d, ..Gemm::default() }.with_epilogue(epilogue.parse().expect("a function"), aux);
        Epilogue::of(&recipe.plan(&Targets::default()).expect("a right recipe"))
    }

    fn told(epilogue: &str, aux: &[&str], d: Major) -> String {
        of(epilogue, aux, d).map_or_else(|why| format!("plain: {why}"), |epilogue| epilogue.to_string())
    }

    #[test]
    fn what_cublaslt_has_is_the_same() {
        let row = |epilogue: &str, aux: &[&str]| told(epilogue, aux, Major::Row);
        assert_eq!(of("a", &[], Major::Row), Ok(Epilogue::PLAIN));
        assert_eq!(row("|a; s| relu(s * a)", &[]), "relu(alpha * A @ B)");
        assert_eq!(row("|a, b; s, t| s * a + t * b", &[]), "alpha * A @ B + beta * C");
        let bias = of("|a, b, c| gelu_tanh(a + c)", &["f16:(0,1)"], Major::Row).expect("it has this");
        assert_eq!((bias.bias, bias.c, bias.activation), (Some(2), None, Activation::GeluTanh));
        let all = of("|a, b, c; s, t| relu(s * a + t * b + c)", &["f16:(0,1)"], Major::Row).expect("it has this");
        assert_eq!((all.bias, all.c, all.alpha), (Some(3), Some((2, Scale::Scalar(1))), Scale::Scalar(0)));
        assert_eq!(all.to_string(), "relu(alpha * A @ B + beta * C + bias)");
        // The tensor that is added to the product, a residual, is C.
        assert_eq!(row("a + b", &[]), "A @ B + C");
        assert_eq!(row("|a, b, c| a + c", &["f16:(?,1)"]), "A @ B + C");
        // A bias lies along the mode where D is contiguous.
        assert_eq!(told("|a, b, c| a + c", &["f16:(1,0)"], Major::Col), "A @ B + bias");
    }

    #[test]
    fn what_it_does_not_have_is_said() {
        let row = |epilogue: &str, aux: &[&str]| told(epilogue, aux, Major::Row);
        let has = |told: String, why: &str| assert!(told.starts_with("plain: ") && told.contains(why), "{told}");
        has(row("gelu(a)", &[]), "approximation by tanh");
        has(row("silu(a)", &[]), "relu and gelu_tanh");
        has(row("|a, b, c| a * c", &["f16:(0,1)"]), "activations of alpha");
        has(row("|a, b, c| a + c", &["f32:(0,1)"]), "type of D");
        has(row("|a, b, c| a + c", &["f16:(1,0)"]), "along the mode where D is contiguous");
        has(row("|a, b, c, d| a + c + d", &["f16:(0,1)", "f16:(0,1)"]), "one vector");
        has(row("a + a", &[]), "not one term");
    }
}
