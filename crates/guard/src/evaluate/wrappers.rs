//! Programs that start other programs: the command inside is judged as if it stood alone.

use super::Evaluator;
use super::call::Call;
use super::options::{is_assignment, value_of, wrapper};
use super::state::State;
use crate::options::takes_next;
use crate::value::{Field, Output};

/// Texts of `trap` that are kept for the end.
const MOST_TRAPS: usize = 16;

impl Evaluator<'_> {
    /// What a wrapper's command does; `None` if this is no wrapper.
    pub fn looked_through(
        &mut self,
        name: &str,
        first: &Field,
        arguments: &[Field],
        call: &Call<'_>,
        state: &mut State,
    ) -> Option<Output> {
        // What is below another program is not the list's own any more.
        let within_list = std::mem::take(&mut self.within_list);
        if super::shells::is_shell(name) {
            self.within_list = within_list;
            return Some(self.shell(name, first, arguments, call, state));
        }
        if name == "env"
            && let Some(at) = wrapper(name).and_then(|wrapper| wrapper.command_at(arguments))
            && let own = &arguments[..arguments.len().min(at + 1)]
            && let Some((at, text)) = value_of(own, 'S', "--split-string")
        {
            let mut words = text;
            for field in &arguments[at + 1..] {
                words.push(' ');
                words.push_str(&super::call::word(&field.value));
            }
            return Some(self.text_of(&arguments[at], &words, state, call.input));
        }
        if name == "command" && arguments.first()?.known().is_some_and(|t| t == "-v" || t == "-V") {
            return None;
        }
        if let Some(wrapper) = wrapper(name) {
            let at = wrapper.command_at(arguments);
            return Some(self.wrapped(name, at, first, arguments, call, state));
        }
        self.special_wrapper(name, first, arguments, call, state)
    }

    /// The command that begins at a word.
    fn wrapped(
        &mut self,
        name: &str,
        at: Option<usize>,
        first: &Field,
        arguments: &[Field],
        call: &Call<'_>,
        state: &mut State,
    ) -> Output {
        let Some(at) = at else {
            self.raise("unknown-program", first.span.clone());
            return Output::default();
        };
        let mut assigns: Vec<String> = call.assigns.to_vec();
        for field in &arguments[..at] {
            if let Some(text) = field.known().filter(|text| is_assignment(text)) {
                assigns.extend(text.split('=').next().map(str::to_owned));
            }
        }
        self.program_assignments(&arguments[..at], state);
        if at == arguments.len() && name == "env" {
            // Alone it prints the whole environment.
            return Output::unknown(name);
        }
        let inner = Call {
            assigns: &assigns,
            writes: &[],
            reads: &[],
            input: call.input,
            span: call.span.clone(),
        };
        // `sudo -s`, `su`: a shell that reads.
        let shell = ["-s", "-i", "--shell", "--login"];
        let asks_shell = arguments[..at]
            .iter()
            .any(|field| field.known().is_some_and(|text| shell.contains(&text.as_ref())));
        if at == arguments.len()
            && asks_shell
            && let Some(input) = call.input
        {
            self.program_text(input, first.span.clone(), state);
        }
        self.call(&arguments[at..], &inner, state)
    }

    fn special_wrapper(
        &mut self,
        name: &str,
        first: &Field,
        arguments: &[Field],
        call: &Call<'_>,
        state: &mut State,
    ) -> Option<Output> {
        let span = first.span.clone();
        Some(match name {
            "busybox" | "toybox" => self.call(arguments, call, state),
            "eval" => self.joined(arguments, call, state),
            "gdb" | "lldb" => {
                for field in arguments {
                    if let Some(text) = field.known()
                        && let Some(text) = ["platform shell ", "shell ", "!"]
                            .iter()
                            .find_map(|start| text.strip_prefix(start))
                    {
                        self.text_of(field, text, &mut state.clone(), None);
                    }
                }
                return None;
            }
            "mapfile" | "readarray" => {
                let (at, text) = value_of(arguments, 'C', "")?;
                self.text_of(&arguments[at], &text, &mut state.clone(), None)
            }
            "watch" => {
                let at = skip_options(arguments, "nq")?;
                self.joined(&arguments[at..], call, state)
            }
            "trap" => {
                let text = arguments.first().filter(|field| !field.value.starts_with('-'))?;
                let known = self.findings.len();
                let output = self.joined(std::slice::from_ref(text), call, &mut state.clone());
                if self.traps.len() < MOST_TRAPS && text.known().is_some() {
                    // It runs later: what is unknown now is judged again by what is known at the end.
                    self.traps.push(text.clone());
                    self.keep_heavier_than_unknown(known);
                }
                output
            }
            "xargs" => self.xargs(arguments, call, state, span),
            "find" => self.find(arguments, call, state),
            "fd" | "fdfind" => self.fd(arguments, call, state)?,
            "parallel" => self.parallel(arguments, call, state, span),
            "flock" => {
                if let Some((at, text)) = value_of(arguments, 'c', "--command") {
                    return Some(self.text_of(&arguments[at], &text, state, call.input));
                }
                let at = skip_options(arguments, "wE")?;
                self.call(arguments.get(at + 1..).unwrap_or_default(), call, state)
            }
            "su" | "runuser" | "script" => {
                let (at, text) = value_of(arguments, 'c', "--command")?;
                self.text_of(&arguments[at], &text, state, call.input)
            }
            "ssh" => {
                // Host, then a command of the far side's shell.
                let at = skip_options(arguments, "BbcDEeFIiJLlmOopQRSWw")? + 1;
                let rest = arguments.get(at..).filter(|rest| !rest.is_empty())?;
                let (known, mut far) = (self.findings.len(), State::new());
                let output = self.joined(rest, call, &mut far);
                // Whose rights it takes there is the other machine's business.
                let mut number = 0;
                self.findings.retain(|finding| {
                    number += 1;
                    number <= known || finding.rule != "gain-root"
                });
                output
            }
            "git" => self.git(arguments, call, state)?,
            _ => return self.runner(name, arguments, call, state),
        })
    }

    /// git's own ways to run a text.
    fn git(&mut self, arguments: &[Field], call: &Call<'_>, state: &mut State) -> Option<Output> {
        let known: Vec<_> = arguments.iter().map(|field| field.known()).collect();
        let is = |at: usize, text: &str| known.get(at).is_some_and(|k| k.as_deref() == Some(text));
        let verb = skip_options(arguments, "cC")?;
        let text_at = if is(verb, "submodule") && is(verb + 1, "foreach") {
            (verb + 2..arguments.len()).find(|at| !arguments[*at].value.starts_with('-'))?
        } else if is(verb, "rebase") {
            let (at, text) = value_of(arguments, 'x', "--exec")?;
            return Some(self.text_of(&arguments[at], &text, state, call.input));
        } else if is(verb, "bisect") && is(verb + 1, "run") {
            return Some(self.call(&arguments[verb + 2..], call, state));
        } else {
            return None;
        };
        Some(self.joined(&arguments[text_at..], call, state))
    }
}

/// Where the words after the options begin; `None` where an unknown word hides it.
pub fn skip_options(words: &[Field], with_value: &str) -> Option<usize> {
    let mut at = 0;
    while let Some(field) = words.get(at) {
        let Some(text) = field.known() else {
            return if field.value.is_many() || field.value.starts_with('-') {
                None
            } else {
                Some(at)
            };
        };
        if text == "--" {
            return Some(at + 1);
        }
        if text.len() < 2 || !text.starts_with('-') {
            return Some(at);
        }
        at += 1 + usize::from(takes_next(&text, with_value));
    }
    Some(words.len())
}
