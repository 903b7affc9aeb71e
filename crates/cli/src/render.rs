//! How our own lines look. Colours only on a terminal, and not where NO_COLOR says so.

use std::io::{self, IsTerminal};

#[derive(Debug, Clone, Copy)]
pub struct Paint {
    on: bool,
}

impl Paint {
    pub fn stdout() -> Paint {
        Paint { on: wanted(io::stdout().is_terminal()) }
    }

    pub fn stderr() -> Paint {
        Paint { on: wanted(io::stderr().is_terminal()) }
    }

    pub fn good(self, text: &str) -> String {
        self.paint("32", text)
    }

    pub fn warn(self, text: &str) -> String {
        self.paint("33", text)
    }

    pub fn bad(self, text: &str) -> String {
        self.paint("31", text)
    }

    pub fn strong(self, text: &str) -> String {
        self.paint("1", text)
    }

    pub fn faint(self, text: &str) -> String {
        self.paint("2", text)
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.on { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

fn wanted(terminal: bool) -> bool {
    terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Starts each of our lines on stderr.
pub fn prefix() -> String {
    Paint::stderr().strong("mcp:")
}

/// A line on stderr; a closed or full stderr is not worth ending a run for.
pub fn say(text: &str) {
    use std::io::Write;
    let _ = writeln!(io::stderr(), "{} {text}", prefix());
}

/// Text that may hold a name from anywhere, without what a terminal would obey.
pub fn plain(text: &str) -> String {
    let escaped = |c: char| match c.is_control() {
        true => c.escape_default().to_string(),
        false => c.to_string(),
    };
    text.chars().map(escaped).collect()
}

/// The same for text of several lines.
pub fn printable(text: &str) -> String {
    text.split('\n').map(plain).collect::<Vec<_>>().join("\n")
}

/// Output of our own on stdout. A reader that has seen enough (`| head`) is no error.
pub fn print(text: &str) {
    use std::io::Write;
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => say(&format!("standard output: {e}")),
        _ => {}
    }
}

/// A number of bytes that was measured: three digits are enough.
pub fn rounded_bytes(count: u64) -> String {
    let mut unit = 1u64;
    while count / unit >= 1024 {
        unit <<= 10;
    }
    let name = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"][unit.ilog2() as usize / 10];
    let value = count as f64 / unit as f64;
    let digits = usize::from(value < 10.0 && value.fract() > 0.04);
    format!("{value:.digits$} {name}")
}
