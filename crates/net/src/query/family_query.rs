//! One family of one name: from server to server until one answers.

use std::net::IpAddr;
use std::time::Instant;

use super::Exchange;
use crate::dns::{Edns, Lookup, ServerAnswer, Transport};
use crate::resolv::Start;

#[derive(Debug)]
pub(super) struct FamilyQuery {
    lookup: Lookup,
    edns: Edns,
    transport: Transport,
    start: Transport,
    first_server: usize,
    /// Servers that were given up.
    tries: usize,
    state: QueryState,
}

#[derive(Debug)]
enum QueryState {
    New,
    Asking { exchange: Exchange, deadline: Instant },
    Done(Finding),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Finding {
    /// Perhaps none.
    Addresses {
        addresses: Vec<IpAddr>,
        ttl: u32,
    },
    NoSuchName {
        ttl: u32,
    },
    Unanswered,
}

impl Finding {
    pub fn has_addresses(&self) -> bool {
        matches!(self, Self::Addresses { addresses, .. } if !addresses.is_empty())
    }
}

pub(super) enum QueryStep {
    /// Ask, as the query now requires.
    Ask,
    Found(Finding),
}

impl FamilyQuery {
    pub fn new(lookup: Lookup, start: Start, first_server: usize) -> Self {
        let start = match start {
            Start::Udp => Transport::Udp,
            Start::Tcp => Transport::Tcp,
        };
        let edns = Edns::With;
        Self {
            lookup,
            edns,
            transport: start,
            start,
            first_server,
            tries: 0,
            state: QueryState::New,
        }
    }

    pub fn tries(&self) -> usize {
        self.tries
    }

    pub fn server(&self, servers: usize) -> usize {
        (self.first_server + self.tries) % servers
    }

    pub fn ask(&mut self, exchange: Exchange, deadline: Instant) -> (Transport, Vec<u8>) {
        self.state = QueryState::Asking { exchange, deadline };
        (self.transport, self.lookup.message(self.edns))
    }

    /// `None` when the message is no answer to the question.
    pub fn received(&mut self, message: &[u8]) -> Option<QueryStep> {
        Some(match self.lookup.read(message)? {
            ServerAnswer::Addresses { addresses, ttl } => {
                QueryStep::Found(Finding::Addresses { addresses, ttl })
            }
            ServerAnswer::NoSuchName { ttl } => QueryStep::Found(Finding::NoSuchName { ttl }),
            ServerAnswer::Cut if self.transport == Transport::Udp => {
                self.transport = Transport::Tcp;
                QueryStep::Ask
            }
            ServerAnswer::NotUnderstood if self.edns == Edns::With => {
                self.edns = Edns::Without;
                QueryStep::Ask
            }
            ServerAnswer::Cut | ServerAnswer::NotUnderstood | ServerAnswer::Failed => {
                self.next_server()
            }
        })
    }

    /// This server is given up; the next one gets the question as the first did.
    pub fn next_server(&mut self) -> QueryStep {
        self.tries += 1;
        self.transport = self.start;
        self.edns = Edns::With;
        QueryStep::Ask
    }

    pub fn finish(&mut self, finding: Finding) {
        self.state = QueryState::Done(finding);
    }

    pub fn finding(&self) -> Option<&Finding> {
        match &self.state {
            QueryState::Done(finding) => Some(finding),
            QueryState::New | QueryState::Asking { .. } => None,
        }
    }

    pub fn exchange(&self) -> Option<Exchange> {
        match self.state {
            QueryState::Asking { exchange, .. } => Some(exchange),
            QueryState::New | QueryState::Done(_) => None,
        }
    }

    pub fn deadline(&self) -> Option<Instant> {
        match self.state {
            QueryState::Asking { deadline, .. } => Some(deadline),
            QueryState::New | QueryState::Done(_) => None,
        }
    }
}
