//! What the benchmarks share: order statistics, a shuffle, the launchers that are compared.

pub mod launchers;
pub mod programs;
mod random;
mod summary;

pub use random::Random;
pub use summary::Summary;
