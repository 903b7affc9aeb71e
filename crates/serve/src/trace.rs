//! One span per call, sent as OTLP over HTTP (JSON) to a collector. Off unless `[otlp]` names one.
//!
//! No arguments, no results, no tokens and no session ids leave; the names of servers, methods, tools and principals do.
//! A collector that is slow or gone loses spans, it does not hold up calls.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use mcp_protocol::{Kind, Message};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::access_log::cut;
use crate::auth::hex;
use crate::config::Otlp;
use crate::metrics::Metrics;

/// Spans that wait for the collector.
const WAITING: usize = 4096;
const BATCH: usize = 512;
const PAUSE: Duration = Duration::from_secs(2);
const POST_TIME: Duration = Duration::from_secs(10);

/// Where spans go.
#[derive(Debug)]
pub struct Tracer {
    spans: Mutex<Option<mpsc::Sender<Value>>>,
    sending: Mutex<Option<JoinHandle<()>>>,
    metrics: Arc<Metrics>,
}

/// The span of a caller, by its `traceparent` header (W3C Trace Context).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parent {
    trace: String,
    span: String,
}

impl Parent {
    pub fn read(header: &str) -> Option<Parent> {
        let mut parts = header.split('-');
        let (version, trace, span) = (parts.next()?, parts.next()?, parts.next()?);
        let is_id = |text: &str, length: usize| {
            text.len() == length
                && text.bytes().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'))
                && text.bytes().any(|it| it != b'0')
        };
        let known = version.len() == 2 && version != "ff" && parts.next()?.len() == 2;
        (known && is_id(trace, 32) && is_id(span, 16))
            .then(|| Parent { trace: trace.to_owned(), span: span.to_owned() })
    }
}

/// A call that has begun. It is told when this is dropped, as cancelled unless [`Span::end`] was called.
#[derive(Debug)]
pub struct Span {
    tracer: Arc<Tracer>,
    parent: Option<Parent>,
    server: String,
    principal: Arc<str>,
    method: String,
    tool: Option<String>,
    began: SystemTime,
    ended: Mutex<Option<(SystemTime, Option<i64>)>>,
}

impl Span {
    /// The answer is there; an error has its code.
    pub fn end(&self, error: Option<i64>) {
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        ended.get_or_insert((SystemTime::now(), error));
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        if let Some(span) = self.told() {
            self.tracer.send(span);
        }
    }
}

impl Span {
    fn told(&self) -> Option<Value> {
        let mut random = [0; 24];
        getrandom::fill(&mut random).ok()?;
        let ended = *self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        let (end, error) = ended.unwrap_or((SystemTime::now(), None));
        let nanoseconds = |at: SystemTime| {
            at.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_nanos().to_string()
        };
        let text = |key: &str, value: &str| json!({"key": key, "value": {"stringValue": value}});
        let mut attributes = vec![
            text("mcp.method.name", cut(&self.method)),
            text("mcp.server", &self.server),
            text("enduser.id", cut(&self.principal)),
        ];
        attributes.extend(self.tool.iter().map(|tool| text("gen_ai.tool.name", cut(tool))));
        let failure = match (ended, error) {
            (None, _) => Some("cancelled".to_owned()),
            (_, Some(code)) => Some(code.to_string()),
            _ => None,
        };
        attributes.extend(failure.iter().map(|failure| text("error.type", failure)));
        let name = match &self.tool {
            Some(tool) => format!("{} {}", cut(&self.method), cut(tool)),
            None => cut(&self.method).to_owned(),
        };
        let mut span = json!({
            "traceId": self.parent.as_ref().map_or_else(|| hex(&random[..16]), |it| it.trace.clone()),
            "spanId": hex(&random[16..]),
            "name": name,
            "kind": 2,
            "startTimeUnixNano": nanoseconds(self.began),
            "endTimeUnixNano": nanoseconds(end),
            "attributes": attributes,
            "status": {"code": if failure.is_some() { 2 } else { 1 }},
        });
        if let Some(parent) = &self.parent {
            span["parentSpanId"] = json!(parent.span);
        }
        Some(span)
    }
}

impl Tracer {
    /// None where no collector is named.
    pub fn start(otlp: Option<&Otlp>, metrics: &Arc<Metrics>) -> Option<Arc<Tracer>> {
        let endpoint = otlp?.endpoint.clone();
        let (spans, incoming) = mpsc::channel(WAITING);
        let sending = tokio::spawn(export(endpoint, incoming, Arc::clone(metrics)));
        Some(Arc::new(Tracer {
            spans: Mutex::new(Some(spans)),
            sending: Mutex::new(Some(sending)),
            metrics: Arc::clone(metrics),
        }))
    }

    /// The span of a request that is passed on to a server now.
    pub fn begin(
        self: &Arc<Tracer>,
        message: &Message<'_>,
        server: &str,
        principal: &Arc<str>,
        parent: Option<Parent>,
    ) -> Option<Span> {
        let Kind::Request { method, .. } = message.kind() else { return None };
        let tool = if method == "tools/call" { message.param_text(&["name"]).ok()? } else { None };
        Some(Span {
            tracer: Arc::clone(self),
            parent,
            server: server.to_owned(),
            principal: Arc::clone(principal),
            method: method.clone(),
            tool: tool.map(|it| it.into_owned()),
            began: SystemTime::now(),
            ended: Mutex::default(),
        })
    }

    fn send(&self, span: Value) {
        let spans = self.spans.lock().unwrap_or_else(PoisonError::into_inner);
        if spans.as_ref().is_none_or(|spans| spans.try_send(span).is_err()) {
            self.metrics.spans_lost(1);
        }
    }

    /// Sends what waits, and takes no more.
    pub async fn finish(&self) {
        drop(self.spans.lock().unwrap_or_else(PoisonError::into_inner).take());
        let sending = self.sending.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(sending) = sending {
            let _ = tokio::time::timeout(POST_TIME, sending).await;
        }
    }
}

async fn export(endpoint: String, mut incoming: mpsc::Receiver<Value>, metrics: Arc<Metrics>) {
    loop {
        let mut spans = Vec::new();
        if incoming.recv_many(&mut spans, BATCH).await == 0 {
            return;
        }
        // A few calls make one message.
        let filled = async {
            while spans.len() < BATCH && incoming.recv_many(&mut spans, BATCH).await > 0 {}
        };
        let _ = tokio::time::timeout(PAUSE, filled).await;
        let (count, place) = (spans.len(), endpoint.clone());
        let sent = tokio::task::spawn_blocking(move || post(&place, spans)).await;
        if !sent.unwrap_or(false) {
            metrics.spans_lost(count as u64);
        }
    }
}

fn post(endpoint: &str, spans: Vec<Value>) -> bool {
    let service = json!([{"key": "service.name", "value": {"stringValue": "mcp-serve"}}]);
    let scope = json!({"name": "mcp-serve", "version": env!("CARGO_PKG_VERSION")});
    let body = json!({"resourceSpans": [{
        "resource": {"attributes": service},
        "scopeSpans": [{"scope": scope, "spans": spans}],
    }]});
    let agent = ureq::Agent::config_builder()
        .timeout_global(Some(POST_TIME))
        .max_redirects(0)
        .build()
        .new_agent();
    let request = agent.post(endpoint).header("content-type", "application/json");
    request.send(body.to_string()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_callers_span_is_taken_up_where_it_is_one() {
        let good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        assert!(Parent::read(good).is_some());
        for bad in [
            "",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473\"-00f067aa0ba902b7-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
        ] {
            assert_eq!(Parent::read(bad), None, "{bad}");
        }
    }
}
