//! Reads the part of SBPL that we write, and answers for an operation as the kernel would.
//!
//! As far as Apple's own profiles and years of others' experiments show: of the rules on the most
//! particular operation the last one that matches decides; if none does, those on the next more
//! general one; and `default` in the end. A few operations are outside `default`, and allowed
//! unless they are denied by name. Where an order was measured that contradicts this, both are asked ([`Model`]).

mod operation;
mod parse;
mod regex;
mod rules;

pub use operation::{End, Question};
pub use parse::{Node, parse};
pub use regex::Regex;
pub use rules::{Model, Rules};
