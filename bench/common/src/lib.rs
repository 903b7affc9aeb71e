//! What the benchmarks share: order statistics, a shuffle, and where programs are.

pub mod programs;
mod random;
mod summary;

pub use random::Random;
pub use summary::Summary;
