//! What a run is on any system: what is asked for, what is planned, what is reported, how it ends.
//!
//! No module here knows an operating system; `linux`, `macos` and `windows` stand on these types.

pub mod check;
pub mod control;
pub mod error;
pub mod exit_code;
pub mod file_id;
pub mod gap;
pub mod glob_set;
pub mod host;
pub mod lasting;
pub mod lexical_path;
pub mod notices;
pub mod plan;
pub mod report;
pub mod request;
pub mod rlimit;
pub mod run_record;
pub mod run_spec;
pub mod termination;
pub mod variables;
pub mod watched;
pub mod wire;
