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

#![cfg_attr(not(feature = "fuzzing"), deny(missing_docs))]

pub mod address;
pub mod address_pool;
pub mod allowlist;
pub mod broker;
mod connect;
mod cursor;
mod destination;
mod dns;
mod endpoint;
mod first_bytes;
mod happy_eyeballs;
mod head;
mod hello;
mod hosts;
mod http;
pub mod lookup;
pub mod loopback_listeners;
pub mod mux;
pub mod mux_endpoint;
mod nss;
mod parsed;
pub mod proxy;
mod query;
mod refusal;
pub mod resolv;
mod shares;
mod socks;
mod telemetry;
pub mod upstream;
pub mod variables;

/// The parsers, public for the fuzz targets alone.
#[cfg(feature = "fuzzing")]
pub mod fuzzing {
    /// Heads of requests and answers of HTTP proxies.
    pub mod connect {
        pub use crate::connect::*;
    }
    /// DNS messages.
    pub mod dns {
        pub use crate::dns::*;
    }
    /// The first message of TLS.
    pub mod hello {
        pub use crate::hello::*;
    }
    /// Heads of HTTP requests.
    pub mod http {
        pub use crate::http::*;
    }
    /// The first bytes of a connection, whatever they are.
    pub mod opening {
        pub use crate::first_bytes::*;
    }
    /// Whether a message is complete.
    pub mod parsed {
        pub use crate::parsed::*;
    }
    /// SOCKS 4 and 5.
    pub mod socks {
        pub use crate::socks::*;
    }
}
