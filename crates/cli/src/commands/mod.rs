//! One file per verb.

pub mod add;
pub mod check;
pub mod clients;
pub mod completions;
pub mod data;
pub mod demo;
pub mod doctor;
pub mod exec;
pub mod export;
pub mod guest;
pub mod image;
pub mod kill;
pub mod learn;
pub mod package;
pub mod policy;
pub mod ps;
pub mod run;
pub mod serve;
pub mod stats;
pub mod unwire;
pub mod wire;
