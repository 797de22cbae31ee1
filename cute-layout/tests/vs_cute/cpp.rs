//! Cases of the line protocol as C++: one expression for each, with compile-time integers.

/// An operation with its operands, as in the line protocol.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Case {
    pub op: String,
    pub inputs: Vec<String>,
}

impl Case {
    pub(crate) fn new<S: Into<String>>(op: &str, inputs: impl IntoIterator<Item = S>) -> Case {
        Case { op: op.to_owned(), inputs: inputs.into_iter().map(Into::into).collect() }
    }

    pub(crate) fn input(&self, index: usize) -> &str {
        self.inputs.get(index).map_or("", String::as_str)
    }
}

impl std::fmt::Display for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}({})", self.op, self.inputs.join(", "))
    }
}

/// What every translation unit begins with. `answer` prints a marked line: the text, and the values of a layout.
pub(crate) const PRELUDE: &str = r#"#include <cute/layout.hpp>
#include <cute/layout_composed.hpp>
#include <cute/swizzle_layout.hpp>
#include <cstdio>
using namespace cute;

template <class S, class D>
constexpr auto lay(S const& s, D const& d) { return Layout<S, D>{s, d}; }

template <class T> void show(T const& t) { print(t); }
inline void show(bool t) { print(t ? 1 : 0); }
template <auto V> void show(C<V> const&) { print(static_cast<long long>(V)); }
template <class A, class B> struct Pair { A a; B b; };
template <class A, class B> Pair(A, B) -> Pair<A, B>;
template <class A, class B> void show(Pair<A, B> const& p) { show(p.a); print(";"); show(p.b); }

template <class T> void values(T const&) {}
template <class L> void some(L const& l) {
  printf(" |");
  for (int i = 0; i < 64 && i < int(size(l)); ++i) { printf(i ? "," : " "); show(l(i)); }
}
template <class S, class D> void values(Layout<S, D> const& l) { some(l); }
template <class A, class O, class B> void values(ComposedLayout<A, O, B> const& l) { some(l); }

template <class T> void answer(int n, T const& t) { printf("answer %d ", n); show(t); values(t); printf("\n"); }

template <class T, class V>
auto layout_tv(T const& thr, V const& val) {
  auto mn = raked_product(thr, val);
  return Pair{product_each(shape(mn)), right_inverse(mn).with_shape(make_shape(size(thr), size(val)))};
}
template <class C, class L>
auto sliced(C const& c, L const& l) {
  auto [layout, offset] = slice_and_offset(c, l);
  return Pair{layout, offset};
}
template <class L> struct Vals { L l; };
template <class L> Vals(L) -> Vals<L>;
template <class L> void show(Vals<L> const& v) { for (int i = 0; i < int(size(v.l)); ++i) { if (i) print(","); show(v.l(i)); } }
"#;

/// The case as a C++ expression, or `None` for an operation that is not known.
pub(crate) fn expression(case: &Case) -> Option<String> {
    let (a, b, c) = (case.input(0), case.input(1), case.input(2));
    let of = |name: &str, operands: &[String]| Some(format!("{name}({})", operands.join(", ")));
    let op = case.op.as_str();
    match op {
        "coalesce" | "filter" | "filter_zeros" if !b.is_empty() => of(op, &[operand(a), tuple(b)]),
        "coalesce"
        | "filter"
        | "filter_zeros"
        | "flatten"
        | "nullspace"
        | "right_inverse"
        | "left_inverse"
        | "cosize"
        | "coshape"
        | "size"
        | "rank"
        | "depth"
        | "max_alignment"
        | "make_layout_like"
        | "make_fragment_like"
        | "zip"
        | "make_identity_layout" => of(op, &[operand(a)]),
        "complement" if b.is_empty() => of(op, &[operand(a)]),
        "complement"
        | "composition"
        | "logical_divide"
        | "zipped_divide"
        | "tiled_divide"
        | "flat_divide"
        | "logical_product"
        | "zipped_product"
        | "tiled_product"
        | "flat_product"
        | "blocked_product"
        | "raked_product"
        | "max_common_vector"
        | "max_common_layout"
        | "compatible"
        | "congruent"
        | "weakly_congruent"
        | "evenly_divides"
        | "ceil_div"
        | "round_up"
        | "shape_div"
        | "domain_distribute"
        | "unflatten"
        | "make_ordered_layout"
        | "idx2crd" => of(op, &[operand(a), operand(b)]),
        "with_shape" => of(&format!("{}.with_shape", operand(a)), &[tuple(b)]),
        "slice" | "dice" => of(op, &[tuple(b), operand(a)]),
        "crd2crd" => of(op, &[tuple(a), tuple(b), tuple(c)]),
        "crd2idx" => of(&operand(b), &[tuple(a)]),
        "eval" => of(&operand(a), &[tuple(b)]),
        "make_swizzle" => Some(format!("make_swizzle<{a}, {b}>()")),
        "swizzle_vals" => {
            Some(format!("Vals{{make_composed_layout({}, C<0>{{}}, lay(C<{b}>{{}}, C<1>{{}}))}}", operand(a)))
        }
        "vals" => Some(format!("Vals{{{}}}", operand(a))),
        "make_layout" => of(op, &[operand(a)]),
        "make_layout_right" => of("make_layout", &[tuple(a), "LayoutRight{}".to_owned()]),
        "make_layout_tv" => of("layout_tv", &[operand(a), operand(b)]),
        "slice_and_offset" if c == "dynamic coord" => of("sliced", &[run_time(b), operand(a)]),
        "slice_and_offset" => of("sliced", &[tuple(b), operand(a)]),
        "tile_to_shape" if c.is_empty() => of(op, &[operand(a), tuple(b)]),
        "tile_to_shape" => of(op, &[operand(a), tuple(b), tuple(c)]),
        "upcast" | "downcast" => of(&format!("{op}<{b}>"), &[operand(a)]),
        "recast_layout" => of(&format!("{op}<uint_bit_t<{b}>, uint_bit_t<{c}>>"), &[operand(a)]),
        "append" | "prepend" if c.is_empty() => of(&format!("{op}<{b}>"), &[operand(a)]),
        "append" | "prepend" | "replace" => of(&format!("{op}<{b}>"), &[operand(a), operand(c)]),
        "group" | "take" => of(&format!("{op}<{b},{c}>"), &[operand(a)]),
        "select" => of(&format!("{op}<{}>", case.inputs[1..].join(",")), &[operand(a)]),
        _ => None,
    }
}

/// A layout, a tuple, a tiler, a swizzle or a composed layout.
pub(crate) fn operand(text: &str) -> String {
    let text = text.trim();
    let composed: Vec<&str> = text.split(" o ").collect();
    if let [swizzle, offset, layout] = composed[..] {
        return format!("make_composed_layout({}, {}, {})", operand(swizzle), tuple(offset), operand(layout));
    }
    if text.starts_with("Sw<") {
        return format!("{}{{}}", text.replace("Sw<", "Swizzle<"));
    }
    if let Some(inner) = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')) {
        let entries: Vec<String> = split(inner).iter().map(|entry| operand(entry)).collect();
        return format!("make_tile({})", entries.join(", "));
    }
    match text.split_once(':') {
        Some((shape, stride)) => format!("lay({}, {})", tuple(shape), tuple(stride)),
        None => tuple(text),
    }
}

/// The parts of a list at its outermost commas.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0, 0);
    for (i, c) in text.char_indices() {
        match c {
            '(' | '[' | '<' => depth += 1,
            ')' | ']' | '>' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&text[start..i]);
                start = i + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

/// A tuple of integers, basis elements and underscores.
fn tuple(text: &str) -> String {
    let text = text.trim();
    if let Some(inner) = text.strip_prefix('(').and_then(|t| t.strip_suffix(')')) {
        let modes: Vec<String> = split(inner).iter().map(|mode| tuple(mode)).collect();
        return format!("make_tuple({})", modes.join(", "));
    }
    if text == "_" {
        return "_".to_owned();
    }
    if let Some((scale, path)) = text.split_once('@') {
        let path: Vec<&str> = path.split('@').rev().collect();
        return format!("ScaledBasis<C<{scale}>, {}>{{}}", path.join(","));
    }
    format!("C<{text}>{{}}")
}

/// A tuple whose integers are known at run time only.
fn run_time(text: &str) -> String {
    tuple(text).replace("C<", "int(").replace(">{}", ")")
}
