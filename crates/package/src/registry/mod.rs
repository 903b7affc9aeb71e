//! Registries: OCI distribution for packages of ours, the public MCP registry for names of others'.
//!
//! https, unless the host is this machine or plain http was asked for. Credentials go to the host
//! they were kept for and to the token service it names, and to no other: a redirect elsewhere
//! loses them. What is downloaded counts only when its digest is the one that was asked for.

mod auth;
mod credentials;
mod http;
mod names;
mod oci;
mod public;
mod root_certificates;
mod signature;
#[cfg(test)]
mod tests;

pub use credentials::{Credentials, Kept};
pub(crate) use http::shown;
pub use http::{Http, Retry};
pub use names::Lookup;
pub use oci::{Meter, Oci, Scheme};
pub use public::{PUBLIC, Public, Summary};
pub use signature::{Locked, PublicKey, is_locked, sign, signature_tag};
