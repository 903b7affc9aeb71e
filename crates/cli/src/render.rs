//! How our own lines look. Colours only on a terminal, and not where NO_COLOR says so.

use std::io::{self, IsTerminal};

use anstyle::{AnsiColor, Style};
use mcp_policy::text;

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
        self.paint(AnsiColor::Green.on_default(), text)
    }

    pub fn warn(self, text: &str) -> String {
        self.paint(AnsiColor::Yellow.on_default(), text)
    }

    pub fn bad(self, text: &str) -> String {
        self.paint(AnsiColor::Red.on_default(), text)
    }

    pub fn strong(self, text: &str) -> String {
        self.paint(Style::new().bold(), text)
    }

    pub fn faint(self, text: &str) -> String {
        self.paint(Style::new().dimmed(), text)
    }

    fn paint(self, style: Style, text: &str) -> String {
        if self.on { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }
}

fn wanted(terminal: bool) -> bool {
    terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// How wide the terminal on standard output is; none for a pipe or a file, which have no width.
pub fn columns() -> Option<usize> {
    if !io::stdout().is_terminal() {
        return None;
    }
    let set = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    set.or_else(measured).filter(|columns| *columns >= 20)
}

#[cfg(unix)]
fn measured() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    Some(usize::from(size.ws_col))
}

#[cfg(not(unix))]
fn measured() -> Option<usize> {
    None
}

/// A line that fits: what is beyond the width is cut, and a sign says so.
pub fn fitted(line: &str, columns: Option<usize>) -> String {
    match columns {
        Some(columns) if line.chars().count() > columns => {
            line.chars().take(columns.saturating_sub(1)).chain(['…']).collect()
        }
        _ => line.to_owned(),
    }
}

/// Starts each of our lines on stderr.
pub fn prefix() -> String {
    Paint::stderr().strong("mcp:")
}

/// A line on stderr; a closed or full stderr is not worth ending a run for.
pub fn say(text: &str) {
    use std::io::Write;
    let _ = writeln!(io::stderr(), "{} {}", prefix(), shown(text));
}

/// Lines on stderr that are no message of ours but what a person is to look at.
pub fn tell(lines: &str) {
    use std::io::Write;
    let _ = write!(io::stderr(), "{}", shown(lines));
}

/// A word from outside: a name of a file, a host or a package, an error that quotes one.
pub fn plain(word: &str) -> String {
    text::word(word)
}

/// The same of a path.
pub fn path(path: &std::path::Path) -> String {
    text::word(&path.to_string_lossy())
}

/// The same for text of several lines.
pub fn printable(lines: &str) -> String {
    text::lines(lines)
}

/// What gets to a terminal in the end, whoever wrote it: nothing that it would obey but our own colours.
fn shown(whole: &str) -> String {
    let mut parts = whole.split(COLOUR);
    let mut out = text::lines(parts.next().unwrap_or_default());
    for part in parts {
        let colour = COLOURS
            .iter()
            .find(|code| part.strip_prefix(**code).is_some_and(|rest| rest.starts_with('m')));
        out.push_str(if colour.is_some() { COLOUR } else { "\\u{1b}[" });
        out.push_str(&text::lines(part));
    }
    out
}

/// What begins a colour, and those that there are.
const COLOUR: &str = "\x1b[";
const COLOURS: [&str; 6] = ["0", "1", "2", "31", "32", "33"];

/// Output of our own on stdout. A reader that has seen enough (`| head`) is no error.
pub fn print(text: &str) {
    use std::io::Write;
    let mut stdout = io::stdout().lock();
    match stdout.write_all(shown(text).as_bytes()).and_then(|()| stdout.flush()) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => say(&format!("standard output: {e}")),
        _ => {}
    }
}

/// The same on stderr, where stdout is a server's.
pub fn print_to_stderr(text: &str) {
    use std::io::Write;
    let _ = io::stderr().lock().write_all(shown(text).as_bytes());
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

/// Values of ours always serialise: no maps with other keys than strings, no failing types.
pub fn to_json<T: serde::Serialize>(value: &T) -> String {
    let json = serde_json::to_string_pretty(value);
    // As good as raw for programs, and nothing that a terminal would obey.
    json.map_or_else(|e| format!("{{\"error\": \"{e}\"}}"), |json| text::serialized(&json))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_colours_are_obeyed() {
        let paint = Paint { on: true };
        let own = paint.good("good") + &paint.strong("strong") + "\n";
        assert_eq!(shown(&own), own);
        assert_eq!(
            shown("a\x1b[2Jb\x1b[m\x1b]0;t\x07\x1b[1;31mc"),
            "a\\u{1b}[2Jb\\u{1b}[m\\u{1b}]0;t\\u{7}\\u{1b}[1;31mc"
        );
        assert_eq!(shown("\u{202e}x\r\u{9b}1m"), "\\u{202e}x\\r\\u{9b}1m");
    }
}
