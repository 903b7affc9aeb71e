//! The network allowlist without a system call: who may be reached, and the languages that
//! connections are made in.
//!
//! Everything here takes bytes that a hostile program or a hostile server wrote. No parser
//! panics, none keeps more than it states, and none guesses: what is not understood is refused.
//!
//! ```text
//! policy ──▶ allowlist ◀── dns (stub questions)      pool   fake address ◀─▶ name
//!                ▲    ◀── hello, http (first bytes)   query  name ──▶ real addresses
//!                │    ◀── socks, connect (proxies)    upstream  the user's own proxy
//!                └─────── address (what a name may not resolve to)
//!                         destination, race (which address is tried when)
//! ```

pub mod address;
pub mod allowlist;
pub mod broker;
pub mod connect;
mod cursor;
pub mod destination;
pub mod dns;
pub mod endpoint;
mod head;
pub mod hello;
pub mod hosts;
pub mod http;
pub mod lookup;
pub mod mux;
pub mod mux_endpoint;
pub mod nss;
pub mod opening;
pub mod parsed;
pub mod pool;
pub mod proxy;
pub mod query;
pub mod race;
pub mod refusal;
pub mod resolv;
mod shares;
pub mod socks;
pub mod upstream;
pub mod variables;
