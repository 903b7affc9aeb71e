//! What the benchmarks share: order statistics, a shuffle, the launchers that are compared.

pub mod launchers;
mod machine;
pub mod plot;
pub mod programs;
mod random;
mod summary;

pub use machine::Machine;
pub use random::Random;
pub use summary::Summary;
