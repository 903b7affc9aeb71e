//! Reads POSIX shell and bash: quoting, words, pipelines, lists, compound commands, functions,
//! redirections, here-documents, substitutions, arithmetic, `case`, `[[`.
//!
//! Written by hand rather than taken from tree-sitter: no C to build on three systems, nothing unsafe,
//! and what it cannot read it says so, instead of repairing it. Time and depth are bounded by the
//! length of the text.

mod ansi;
pub mod ast;
mod command;
mod compound;
mod cursor;
mod expansion;
mod redirect;
mod word;

pub use cursor::{Origin, parse};
