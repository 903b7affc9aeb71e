//! MCP clients as data: where each keeps its servers, how its file is read and edited, and what an entry
//! becomes when its server is put behind `mcp run`.
//!
//! A file is never written anew. It is parsed with the place of every value, and an edit is a list of
//! replacements of places; what is outside of them stays as it is, byte for byte. The result is parsed again
//! and compared with what was meant before anything is written.

#![deny(missing_docs)]
#![forbid(unsafe_code)]

mod add;
mod client;
pub mod document;
mod entry;
mod error;
pub mod journal;
mod locate;
mod place;
mod rewrite;
mod text;
mod undo;
mod wire;
mod write;

pub use add::{NewServer, printed};
pub use client::{
    Allowlist, Client, Container, Disabled, Environment, Fields, FileAt, Format, Grade, NotCovered,
    Override, all, find,
};
pub use document::{Document, Edited, Fault, Place};
pub use entry::{Entry, Kind, Shape, Stdio, Trail};
pub use error::Error;
pub use locate::{
    Found, Scope, allowlist_files, clients_in, first_file, not_covered, projects_files, user_files,
};
pub use place::{Surroundings, System};
pub use rewrite::{Access, Grant, Line, Proposal, Refusal, Target, Wanted, propose};
pub use text::Bytes;
pub use undo::{Undone, remove, undo};
pub use wire::{Added, Undo};
pub use write::{Original, read, remove as remove_file, write};
