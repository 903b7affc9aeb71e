//! One JSON line per request. No arguments, no tokens. A slow disk loses lines, it does not hold up calls.

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Serialize;
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc;

use crate::error::Error;

const WAITING: usize = 4096;
/// Characters of a word that a client chose.
const LONGEST_WORD: usize = 128;

/// The beginning of a client's word: a line is to be short, whatever is sent.
pub fn cut(word: &str) -> &str {
    word.char_indices().nth(LONGEST_WORD).map_or(word, |(end, _)| &word[..end])
}

#[derive(Debug, Clone)]
pub struct AccessLog {
    lines: Option<mpsc::Sender<Vec<u8>>>,
}

/// What is written of a request.
#[derive(Debug, Serialize)]
pub struct Line<'a> {
    pub peer: SocketAddr,
    pub http: &'a str,
    pub path: &'a str,
    pub status: u16,
    pub milliseconds: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub principal: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<&'a str>,
}

#[derive(Serialize)]
struct Timed<'a> {
    time: f64,
    #[serde(flatten)]
    line: &'a Line<'a>,
}

impl AccessLog {
    pub async fn open(path: Option<&Path>) -> Result<AccessLog, Error> {
        let Some(path) = path else { return Ok(AccessLog { lines: None }) };
        let mut file: Box<dyn tokio::io::AsyncWrite + Send + Unpin> = if path.as_os_str() == "-" {
            Box::new(tokio::io::stdout())
        } else {
            let mut options = tokio::fs::OpenOptions::new();
            options.create(true).append(true);
            #[cfg(unix)]
            options.mode(0o600);
            Box::new(options.open(path).await.map_err(|why| Error::file(path, why))?)
        };
        let (lines, mut incoming) = mpsc::channel::<Vec<u8>>(WAITING);
        tokio::spawn(async move {
            while let Some(line) = incoming.recv().await {
                if file.write_all(&line).await.is_err() || file.flush().await.is_err() {
                    return;
                }
            }
        });
        Ok(AccessLog { lines: Some(lines) })
    }

    pub fn write(&self, line: &Line<'_>) {
        let Some(lines) = &self.lines else { return };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        if let Ok(mut text) = serde_json::to_vec(&Timed { time: now.as_secs_f64(), line }) {
            text.push(b'\n');
            let _ = lines.try_send(text);
        }
    }
}
