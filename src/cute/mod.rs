//! CuTe's algebra of layouts, its atoms, and how both are explained and drawn.

pub mod algebra_tool;
pub mod atom;
#[cfg(feature = "draw")]
pub mod draw;
pub mod layout;
