//! The parameter struct as C fields, C assertions and a Rust type, all from one description.

use std::fmt::Write as _;

use crate::plan::{Param, Plan};

/// The name of the C struct: `<kernel>_params`.
pub(crate) fn c_name(plan: &Plan) -> String {
    format!("{}_params", plan.name())
}

/// `name : comment` columns, one field a line.
pub(crate) fn c_fields<'a>(fields: impl IntoIterator<Item = &'a Param, IntoIter: Clone>) -> String {
    let fields = fields.into_iter();
    let width = fields.clone().map(|f| f.to_string().len() + 1).max().unwrap_or(0);
    let mut out = String::new();
    for field in fields {
        let declaration = format!("{field};");
        let _ = writeln!(out, "  {declaration:width$}  // {}", field.doc);
    }
    out.truncate(out.trim_end().len());
    out
}

/// The headers of the types of its fields, beside those of integers.
pub(crate) fn c_headers(plan: &Plan) -> &'static [&'static str] {
    if plan.params().has_tensor_maps() { &["cuda.h", "stdalign.h"] } else { &[] }
}

/// One `CUTEMPLATE_ASSERT` line for the size and for each offset.
pub(crate) fn c_assertions(plan: &Plan) -> Vec<(String, String)> {
    let name = c_name(plan);
    let mut all = vec![(format!("sizeof({name}) == {}", plan.params().size()), "size".to_owned())];
    for field in plan.params().fields() {
        all.push((format!("offsetof({name}, {}) == {}", field.name, field.offset), field.name.clone()));
    }
    all
}
