//! What was found out about a Windows machine.

use mcp_sandbox::Fact;
use mcp_sandbox::windows::WindowsFacts;

use super::{Findings, Line, Mark};

impl Findings for WindowsFacts {
    fn mechanisms(&self) -> Vec<Line> {
        let less = |topic: &str, text: &str| Line::new(topic, Mark::Less, text);
        vec![
            Line::new(
                "system",
                Mark::Holds,
                format!("{} on {}, {} processors", self.system, self.architecture, self.processors),
            ),
            Line::tried(
                "job objects",
                &self.tree_kill,
                Mark::Fails,
                "a process died with the last handle of its job, and none could break away",
            ),
            Line::tried(
                "job limits",
                &self.limits,
                Mark::Less,
                "memory and processes: set, read back, and a process that wanted more was refused",
            ),
            Line::tried("processor cap", &self.cpu_rate, Mark::Less, "set and read back"),
            Line::tried(
                "windows, clipboard",
                &self.ui,
                Mark::Less,
                "restrictions on the desktop were set and read back",
            ),
            Line::tried(
                "restricted token",
                &self.token,
                Mark::Fails,
                "no privileges, administrators' groups deny only, low integrity: seen from inside",
            ),
            Line::tried(
                "AppContainer",
                &self.container,
                Mark::Fails,
                "from inside, a file, a new file, a port and the launcher were out of reach; its own directory not",
            ),
            Line::tried(
                "drive root",
                &self.drive_root,
                Mark::Less,
                "every container may ask for the attributes of the system's drive",
            ),
            relay(self),
            less("disk rate", "Windows has none since version 1607: --max-io has no mechanism"),
            less("open files, sizes", "Windows bounds neither handles nor the size of files"),
        ]
    }

    fn closes_parts(&self) -> bool {
        false
    }

    fn recommendations(&self, starts: bool) -> Vec<String> {
        let mut advice = Vec::new();
        if let Fact::Fails { why } = &self.container {
            advice.push(format!(
                "Nothing is confined without an AppContainer ({why}): `mcp run` refuses to start, and \
                 --fallback warn starts with limits only. Windows 8 and later have them; Wine has not."
            ));
        }
        match starts {
            true => advice.push(
                "The default policy is enforced on this machine: mcp run is safe to use."
                    .to_owned(),
            ),
            false if advice.is_empty() => advice.push(
                "Do not rely on mcp run here: what is marked [⚠] above does not hold.".to_owned(),
            ),
            false => {}
        }
        advice
    }
}

/// Without a container there is nothing to get out of, and a relay that works confines no process.
fn relay(facts: &WindowsFacts) -> Line {
    const TOPIC: &str = "network allowlist";
    match (&facts.relay, facts.container.usable()) {
        (Fact::Works, false) => Line::new(
            TOPIC,
            Mark::Less,
            "a program connected to the relay, and the launcher's proxy answered; nothing keeps it from other ways",
        ),
        (relay, _) => Line::tried(
            TOPIC,
            relay,
            Mark::Less,
            "a program inside connected to the relay there, and the launcher's proxy answered",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(facts: &WindowsFacts) -> Vec<(String, Mark)> {
        facts.mechanisms().into_iter().map(|line| (line.topic, line.mark)).collect()
    }

    #[test]
    fn what_was_not_tried_is_not_said_to_hold() {
        for (topic, mark) in marks(&WindowsFacts::usual().unwrap()) {
            assert_eq!(mark == Mark::Holds, topic == "system", "{topic}");
        }
    }

    #[test]
    fn no_container_is_a_failure_with_what_it_means() {
        let container = Fact::Fails { why: "userenv.dll has no such function".to_owned() };
        let facts = WindowsFacts { container, ..WindowsFacts::usual().unwrap() };
        assert!(marks(&facts).contains(&("AppContainer".to_owned(), Mark::Fails)));
        assert!(facts.recommendations(false).join(" ").contains("refuses to start"));
    }
}
