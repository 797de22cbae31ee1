//! The laws of the layout algebra, at every coordinate of random layouts: 12,000 cases a test from a fixed seed.
//! `CUTE_LAYOUT_LAW_CASES` sets another number.

mod brute;
mod composition;
mod operations;
mod recasts;
mod strategies;
mod swizzled;
mod symbols;
