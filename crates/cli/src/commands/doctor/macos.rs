//! What was found out about a Mac. Which systems have what a Mac lacks is said with what it means here.

use mcp_sandbox::Fact;
use mcp_sandbox::macos::MacFacts;

use super::{Findings, Line, Mark};

impl Findings for MacFacts {
    fn mechanisms(&self) -> Vec<Line> {
        let less = |topic: &str, text: &str| Line::new(topic, Mark::Less, text);
        vec![
            Line::new(
                "system",
                Mark::Holds,
                format!("{}, Darwin {} on {}", self.system, self.kernel, self.architecture),
            ),
            Line::tried(
                "seatbelt",
                &self.seatbelt,
                Mark::Fails,
                "/usr/bin/sandbox-exec: a profile closed a file that was open without it",
            ),
            Line::tried(
                "membership",
                &self.membership,
                Mark::Fails,
                "the system tells a run's processes from all others, however far they have moved",
            ),
            Line::tried(
                "rlimits",
                &self.rlimits,
                Mark::Fails,
                "set in a child, read back, and held",
            ),
            Line::tried(
                "accounting",
                &self.accounting,
                Mark::Fails,
                "processes and their memory can be counted: that is how memory is limited here",
            ),
            Line::tried("address space", &self.address_space, Mark::Less, "RLIMIT_AS is accepted"),
            less(
                "cgroups",
                "Linux only: memory and processes are watched instead, and --max-cpu has no mechanism",
            ),
            less(
                "namespaces",
                "Linux only: Seatbelt refuses by path what Linux does not even show",
            ),
            less("seccomp", "Linux only: Seatbelt filters operations, not system calls"),
        ]
    }

    fn recommendations(&self, enforced: bool) -> Vec<String> {
        let mut advice = Vec::new();
        if let Fact::Fails { why } = &self.seatbelt {
            advice.push(format!(
                "Nothing is confined without Seatbelt ({why}): start mcp outside of other sandboxes \
                 (an editor's terminal may be in one), or use a Linux virtual machine."
            ));
        }
        if self.caller.is_root() {
            advice.push("Start mcp as an ordinary user: root stays root on a Mac.".to_owned());
        }
        match enforced {
            true => advice.push(
                "The default policy is enforced on this machine. Where memory, processor share or \
                 temporary space must be bounded exactly, use a Linux virtual machine."
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

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(facts: &MacFacts) -> Vec<(String, Mark)> {
        facts.mechanisms().into_iter().map(|line| (line.topic, line.mark)).collect()
    }

    #[test]
    fn what_was_not_tried_is_not_said_to_hold() {
        for (topic, mark) in marks(&MacFacts::usual()) {
            assert_eq!(mark == Mark::Holds, topic == "system", "{topic}");
        }
    }

    #[test]
    fn a_mac_inside_a_sandbox_fails_and_says_what_to_do() {
        let why = "this process is in a sandbox already".to_owned();
        let facts = MacFacts { seatbelt: Fact::Fails { why }, ..MacFacts::usual() };
        assert!(marks(&facts).contains(&("seatbelt".to_owned(), Mark::Fails)));
        let advice = facts.recommendations(false).join(" ");
        assert!(advice.contains("in a sandbox already") && advice.contains("virtual machine"));
    }

    #[test]
    fn nothing_is_called_missing_without_what_it_means() {
        for line in MacFacts::usual().mechanisms() {
            if line.text.starts_with("Linux only") {
                assert!(line.text.contains(": "), "{}", line.text);
            }
        }
    }
}
