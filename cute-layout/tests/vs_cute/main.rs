//! Contract: the layout algebra against CuTe itself, compiled from the CUTLASS headers by the host's C++ compiler.
//!
//! * what is accepted here is the operation's definition, and where CuTe is right it is CuTe's text;
//! * where CuTe differs, the case belongs to a named family in `tests/ledger`, and each family shows in compiled CuTe.

mod cases;
mod compile;
mod cpp;
mod exact;
mod laws;
mod ledger;
mod ops;
mod random;
mod refusals;
mod shrink;
mod texts;
#[path = "../../../tests/support/variables.rs"]
mod variables;
mod volume;
