//! What happened, as Prometheus reads it.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Upper bounds of the latency histogram, in milliseconds.
const BUCKETS: [u64; 10] = [1, 2, 5, 10, 25, 100, 500, 2_000, 10_000, 60_000];

#[derive(Debug, Default)]
pub struct Metrics {
    servers: Mutex<BTreeMap<String, Counts>>,
    refusals: Mutex<BTreeMap<&'static str, u64>>,
    pub connections: AtomicU64,
    yields: AtomicU64,
    spans_lost: AtomicU64,
}

#[derive(Debug, Default, Clone)]
struct Counts {
    starts: u64,
    live: u64,
    answers: u64,
    errors: u64,
    dropped: u64,
    noise: u64,
    buckets: [u64; BUCKETS.len()],
    milliseconds: u64,
}

impl Metrics {
    fn change(&self, server: &str, change: impl FnOnce(&mut Counts)) {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(counts) = servers.get_mut(server) {
            return change(counts);
        }
        change(servers.entry(server.to_owned()).or_default());
    }

    pub fn started(&self, server: &str) {
        self.change(server, |counts| {
            counts.starts += 1;
            counts.live += 1;
        });
    }

    pub fn ended(&self, server: &str) {
        self.change(server, |counts| counts.live = counts.live.saturating_sub(1));
    }

    pub fn answered(&self, server: &str, took: Duration, is_error: bool) {
        let milliseconds = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        self.change(server, |counts| {
            counts.answers += 1;
            counts.errors += u64::from(is_error);
            counts.milliseconds = counts.milliseconds.saturating_add(milliseconds);
            for (bound, count) in BUCKETS.iter().zip(&mut counts.buckets) {
                *count += u64::from(milliseconds <= *bound);
            }
        });
    }

    /// A message of the server's that no client could get.
    pub fn dropped(&self, server: &str) {
        self.change(server, |counts| counts.dropped += 1);
    }

    /// A line on the server's standard output that was no message.
    pub fn noise(&self, server: &str) {
        self.change(server, |counts| counts.noise += 1);
    }

    pub fn refused(&self, why: &'static str) {
        let mut refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        *refusals.entry(why).or_default() += 1;
    }

    /// A sandbox that its principal no longer used made room for another.
    pub fn yielded(&self) {
        self.yields.fetch_add(1, Ordering::Relaxed);
    }

    /// Spans that the collector did not get.
    pub fn spans_lost(&self, count: u64) {
        self.spans_lost.fetch_add(count, Ordering::Relaxed);
    }

    /// The text exposition format, with the memory of each server's processes and the bytes of messages that are held.
    pub fn text(&self, memory: &[(String, u64)], held: usize) -> String {
        let servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut out = String::new();
        let mut each = |name: &str, kind: &str, value: fn(&Counts) -> u64| {
            let _ = writeln!(out, "# TYPE {name} {kind}");
            for (server, counts) in &servers {
                let _ = writeln!(out, "{name}{{server=\"{server}\"}} {}", value(counts));
            }
        };
        each("mcp_serve_starts_total", "counter", |counts| counts.starts);
        each("mcp_serve_sandboxes", "gauge", |counts| counts.live);
        each("mcp_serve_answers_total", "counter", |counts| counts.answers);
        each("mcp_serve_error_answers_total", "counter", |counts| counts.errors);
        each("mcp_serve_dropped_messages_total", "counter", |counts| counts.dropped);
        each("mcp_serve_noise_lines_total", "counter", |counts| counts.noise);
        out.push_str("# TYPE mcp_serve_call_seconds histogram\n");
        for (server, counts) in &servers {
            for (bound, count) in BUCKETS.iter().zip(counts.buckets) {
                let seconds = *bound as f64 / 1000.0;
                let _ = writeln!(
                    out,
                    "mcp_serve_call_seconds_bucket{{server=\"{server}\",le=\"{seconds}\"}} {count}"
                );
            }
            let (sum, count) = (counts.milliseconds as f64 / 1000.0, counts.answers);
            let _ = writeln!(
                out,
                "mcp_serve_call_seconds_bucket{{server=\"{server}\",le=\"+Inf\"}} {count}"
            );
            let _ = writeln!(out, "mcp_serve_call_seconds_sum{{server=\"{server}\"}} {sum}");
            let _ = writeln!(out, "mcp_serve_call_seconds_count{{server=\"{server}\"}} {count}");
        }
        out.push_str("# TYPE mcp_serve_refusals_total counter\n");
        for (why, count) in refusals {
            let _ = writeln!(out, "mcp_serve_refusals_total{{why=\"{why}\"}} {count}");
        }
        out.push_str("# TYPE mcp_serve_server_memory_bytes gauge\n");
        for (server, bytes) in memory {
            let _ = writeln!(out, "mcp_serve_server_memory_bytes{{server=\"{server}\"}} {bytes}");
        }
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        for (name, kind, value) in [
            ("mcp_serve_connections", "gauge", load(&self.connections)),
            ("mcp_serve_held_bytes", "gauge", held as u64),
            ("mcp_serve_yielded_sandboxes_total", "counter", load(&self.yields)),
            ("mcp_serve_lost_spans_total", "counter", load(&self.spans_lost)),
        ] {
            let _ = writeln!(out, "# TYPE {name} {kind}\n{name} {value}");
        }
        out
    }
}
