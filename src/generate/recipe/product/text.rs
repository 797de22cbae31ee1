//! The tensors and the epilogue of a product, as the templates name them.

use super::params::stride_params;
use crate::expr::{Compute, Helpers};
use crate::plan::{Groups, ModeStride, Operand, Product, SCALE_D, SCALED_N};
use crate::view::Access;

/// How an epilogue reads an input.
pub(crate) enum EpilogueRead {
    /// As vectors along N.
    Vectors,
    /// The same, where it is read at all.
    GuardedVectors,
    Elements,
}

/// A tensor in global memory as the templates name it.
pub(crate) struct Tensor {
    pub(crate) is: Operand,
    pub(crate) shape: String,
    /// Whether its rows are those of D, in groups.
    pub(crate) grouped: bool,
    /// Whether an index names its rows.
    pub(crate) scattered: bool,
    /// Whether groups along K are parts of it.
    pub(crate) of_k: bool,
    pub(crate) strides: String,
    /// `(M,K)`.
    pub(crate) modes: &'static str,
    /// The type of a vector if it is contiguous along N, else `void`.
    pub(crate) vector: String,
    /// When it is read at all; empty for always.
    pub(crate) guard: String,
    /// The type that the epilogue takes its elements in.
    pub(crate) compute: Compute,
}

impl Tensor {
    /// A tensor as the text has it: B is (N,K), as in CuTe. A tensor that is contiguous along N is moved by `vector`
    /// elements at a time.
    pub(crate) fn new(product: &Product, is: Operand, vector: i64) -> Self {
        let (pairs, scatter) = (product.sums() > 1, product.indices().scatter);
        let (extents, modes) = match is.name {
            "A" => (["m", "k"], "(M,K)"),
            "B" => (["n", "k"], "(N,K)"),
            SCALE_D if pairs => (["m", "n"], "(M,N/256)"),
            SCALE_D => (["m", "n"], "(M,N/128)"),
            "D" | "E" if scatter && pairs => (["rows_d", "n"], "(ROWS,N/2)"),
            "D" | "E" if scatter => (["rows_d", "n"], "(ROWS,N)"),
            "D" | "E" if pairs => (["m", "n"], "(M,N/2)"),
            "C" if pairs => (["m", "n"], "(M,(2,N/2))"),
            _ => (["m", "n"], "(M,N)"),
        };
        let stride = |(kind, param): (&ModeStride, Option<String>)| match (kind, param) {
            (ModeStride::Unit, _) => "_1{}".to_owned(),
            (_, Some(param)) => format!("params.{param}"),
            _ => "_0{}".to_owned(),
        };
        let mut strides: Vec<String> = is.strides.iter().zip(stride_params(&is)).map(stride).collect();
        // An element of C is that of both columns of a pair.
        let repeated = pairs && is.name == "C";
        if let Some(along_n) = strides.get_mut(1).filter(|_| repeated) {
            *along_n = format!("make_stride(_0{{}}, {along_n})");
        }
        if is.name == "B" {
            strides.swap(0, 1);
        }
        let batch = (is.strides.len() > 2).then_some("l");
        let extent = |extent: &str| match extent {
            "n" if is.name == SCALE_D => format!("ceil_div(params.n, {})", SCALED_N * product.sums() as i64),
            "n" if repeated => "make_shape(_2{}, params.n / 2)".to_owned(),
            "n" if pairs && matches!(is.name, "D" | "E") => "params.n / 2".to_owned(),
            extent => format!("params.{extent}"),
        };
        let shape: Vec<String> = extents.into_iter().chain(batch).map(extent).collect();
        let vector = 8 * vector as u64 * is.dtype.bytes().0;
        let along_n = is.strides.get(1) == Some(&ModeStride::Unit) && !repeated;
        let beta = product.beta().filter(|_| is.name == "C");
        let guard = beta.map(|s| format!("params.{} != 0.0f", product.scalar_params()[s]));
        Self {
            grouped: product.groups().are_of_rows() && is.name != "B",
            of_k: product.groups() == Groups::K && matches!(is.name, "A" | "B"),
            scattered: product.indices().scatter && matches!(is.name, "D" | "E"),
            is,
            shape: format!("make_shape({})", shape.join(", ")),
            strides: format!("make_stride({})", strides.join(", ")),
            modes,
            vector: if along_n { format!("uint{vector}_t") } else { "void".to_owned() },
            guard: guard.unwrap_or_default(),
            compute: product.epilogue().compute(),
        }
    }

    /// How many rows of D there are where its tile lies.
    fn rows(&self) -> &'static str {
        if self.grouped { "rows_of(crd_D)" } else { "params.m" }
    }

    /// Its shape where a tile of D lies.
    pub(crate) fn shape_of_tile(&self) -> String {
        self.shape.replace("params.m", self.rows())
    }

    /// The function that gives the part of a tile's batch, or group.
    pub(crate) fn part(&self) -> &'static str {
        match self.grouped {
            _ if self.scattered => "Scattered{params}",
            _ if self.of_k => "PartOfK{params}",
            true => "of_group",
            false => "of_batch",
        }
    }

    /// How its part is declared: rows that an index names are no tensor.
    pub(crate) fn declared(&self) -> &'static str {
        if self.scattered { "auto const" } else { "Tensor" }
    }

    /// Whether it has a last mode L.
    pub(crate) fn has_l(&self) -> bool {
        self.is.strides.len() > 2
    }

    /// `C` in `tCrC` would be the accumulators, so the fragment of C is `tCrX`.
    pub(crate) fn read_name(&self) -> &'static str {
        if self.is.name == "C" { "X" } else { self.is.name }
    }

    /// `float const`.
    pub(crate) fn pointee(&self) -> String {
        format!("{}{}", self.is.dtype.cxx(), if self.is.access == Access::Write { "" } else { " const" })
    }

    /// Whether its element at a coordinate of D is there: modes along which one element stands for all have no end.
    pub(crate) fn inside(&self, crd: &str) -> String {
        let extents = [self.rows(), "params.n"];
        let bounded = |mode: &usize| self.is.strides.get(*mode) != Some(&ModeStride::Broadcast);
        match (0..2).filter(bounded).collect::<Vec<_>>()[..] {
            [] => "true".to_owned(),
            [mode] => format!("get<{mode}>({crd}) < {}", extents[mode]),
            _ => format!("elem_less({crd}, make_shape({}, params.n))", self.rows()),
        }
    }

    /// Whether neighbours along N are neighbours in memory.
    pub(crate) fn lies_along_n(&self) -> bool {
        self.vector != "void"
    }

    /// Whether pairs of neighbours along N lie at multiples of both, where the first of a pair is even along N.
    pub(crate) fn has_pairs(&self) -> String {
        if !self.lies_along_n() {
            return "false".to_owned();
        }
        let bytes = 2 * self.is.dtype.bytes().0;
        let address = format!("reinterpret_cast<uintptr_t>(params.{}) % {bytes} == 0", self.is.param);
        let strides = stride_params(&self.is).into_iter().flatten().map(|stride| format!("params.{stride} % 2 == 0"));
        core::iter::once(address).chain(strides).collect::<Vec<_>>().join(" && ")
    }

    /// How it is read.
    pub(crate) fn reading(&self) -> EpilogueRead {
        match (self.lies_along_n(), self.guard.is_empty()) {
            (false, _) => EpilogueRead::Elements,
            (true, true) => EpilogueRead::Vectors,
            (true, false) => EpilogueRead::GuardedVectors,
        }
    }

    /// Whether it is read at all.
    pub(crate) fn is_read(&self) -> &str {
        if self.guard.is_empty() { "true" } else { &self.guard }
    }

    /// An element in the type that the epilogue computes in, by its helpers.
    fn converted(&self, element: &str) -> String {
        Helpers::new(self.compute).load(self.is.dtype, element)
    }

    /// The element of its view `prefix`, converted, or 0 where it need not be read.
    pub(crate) fn load(&self, prefix: &str, index: &str) -> String {
        let element = self.converted(&format!("{prefix}{}{index}", self.is.name));
        if self.guard.is_empty() { element } else { format!("{} ? {element} : 0.0f", self.guard) }
    }
}

/// The function of the accumulator, in C++, and its arguments.
pub(crate) struct EpilogueText {
    pub(crate) helpers: String,
    pub(crate) functor: String,
    /// The run-time scalars, as the functor's members are given them.
    pub(crate) scalars: String,
    /// `a = sum over k of A(m,k) * B(n,k)`.
    pub(crate) sums_doc: String,
    /// `, b = C(m,n)`.
    pub(crate) inputs_doc: String,
    /// The operand of each input after the accumulators, and which column of a pair it is of; `None` for an unused C.
    inputs: Vec<Option<[usize; 2]>>,
}

impl EpilogueText {
    /// The epilogue's text for a product with these operands.
    pub(crate) fn new(product: &Product, operands: &[Operand]) -> Self {
        let mut helpers = Helpers::new(product.epilogue().compute());
        let mut functor = product.epilogue().functor("Op", &mut helpers);
        if let Some(quantiser) = product.quantiser() {
            functor += "\n\n// The element of D, and the scale, of a result and of the largest size among the 128 that share the scale.\n";
            functor += &quantiser.functor("Quantise", &mut helpers);
        }
        for operand in operands {
            helpers.load(operand.dtype, "");
        }
        // After A and B: C if it is used, and the auxiliary tensors.
        let (function, sums) = (product.epilogue().function(), product.sums());
        let unused_c = !product.has_c() && function.inputs() > sums;
        let read = operands.iter().enumerate().skip(2);
        let read = read.flat_map(|(at, operand)| (0..product.inputs_of(operand)).map(move |of| Some([at, of])));
        let all = unused_c.then_some(None).into_iter().chain(read);
        let inputs: Vec<Option<[usize; 2]>> = all.take(function.inputs().saturating_sub(sums)).collect();
        let named = inputs.iter().zip(function.input_names().skip(sums));
        let name =
            |at: &Option<[usize; 2]>| at.and_then(|[at, _]| operands.get(at)).map_or("C", |operand| operand.name);
        let of_a_pair = |[at, _]: &[usize; 2]| operands.get(*at).is_some_and(|operand| product.inputs_of(operand) > 1);
        let column =
            |at: &Option<[usize; 2]>| at.filter(of_a_pair).map_or("(m,n)", |[_, of]| ["(m,2n)", "(m,2n+1)"][of]);
        let sums_doc = match function.input_names().collect::<Vec<_>>()[..] {
            [gate, up, ..] if sums > 1 => {
                format!("{gate} and {up} = sums over k of A(m,k) * B(2n,k), and of A(m,k) * B(2n+1,k)")
            }
            _ => "a = sum over k of A(m,k) * B(n,k)".to_owned(),
        };
        let scalars: Vec<String> = product.scalar_params().iter().map(|s| format!("params.{s}")).collect();
        Self {
            sums_doc,
            inputs_doc: named.map(|(at, input)| format!(", {input} = {}{}", name(at), column(at))).collect(),
            helpers: helpers.to_string(),
            functor,
            scalars: scalars.join(", "),
            inputs,
        }
    }

    /// The function's arguments after the accumulators: `value` of each tensor, and of which column of a pair.
    fn of_columns(&self, operands: &[Tensor], value: impl Fn(&Tensor, usize) -> String) -> String {
        let one =
            |input: &Option<[usize; 2]>| input.map_or_else(|| "0.0f".to_owned(), |[at, of]| value(&operands[at], of));
        self.inputs.iter().map(|input| format!(", {}", one(input))).collect()
    }

    /// The same of accumulators that are none of a pair.
    pub(crate) fn arguments(&self, operands: &[Tensor], value: impl Fn(&Tensor) -> String) -> String {
        self.of_columns(operands, |t, _| value(t))
    }

    /// The same, each element in registers as it was read, at the index of its column.
    pub(crate) fn converted(&self, operands: &[Tensor], prefix: &str, indices: &[&str]) -> String {
        let element = |t: &Tensor, of: usize| t.converted(&format!("{prefix}{}{}", t.read_name(), indices[of]));
        self.of_columns(operands, element)
    }
}
