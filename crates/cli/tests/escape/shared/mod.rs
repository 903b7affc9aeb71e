//! Attacks that are the same on Linux and on macOS. Each system's own file lists those that it has to withstand, with
//! the boundary that the machine must have; the attack itself is here, once.

pub mod filesystem;
pub mod limits;
pub mod network;
pub mod processes;
pub mod time_and_death;

/// Tests of these names, which run the attacks of a module here where the machine has the boundary.
#[macro_export]
macro_rules! shared_attacks {
    ($boundary:literal, $module:ident: $($name:ident $(needs $($feature:literal),+)?;)+) => {
        $(
            #[test]
            fn $name() {
                $crate::require!($boundary $($(, $feature)+)?);
                $crate::shared::$module::$name();
            }
        )+
    };
}
