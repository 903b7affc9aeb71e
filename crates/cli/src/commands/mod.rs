//! One file per verb.

pub mod check;
pub mod demo;
pub mod doctor;
pub mod guest;
pub mod policy;
pub mod run;
