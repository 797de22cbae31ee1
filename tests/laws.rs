//! The laws of the layout algebra, at every coordinate of random layouts: 20,000 cases a test from a fixed seed.
//! `CUTEMPLATE_LAW_CASES` sets another number.

#[path = "laws/brute.rs"]
mod brute;
#[path = "laws/composition.rs"]
mod composition;
#[path = "laws/operations.rs"]
mod operations;
#[path = "laws/strategies.rs"]
mod strategies;
