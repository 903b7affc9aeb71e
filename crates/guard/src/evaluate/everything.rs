//! What is done to everything at once: all that a list shows, a whole home, processes without end.

use super::Evaluator;
use super::call::Call;
use super::provenance::{ALL_CONTAINERS, SECRET_VARIABLE};
use super::state::State;
use crate::place::Pattern;
use crate::shell::ast::{Command, Item, Kind, List, Span, Word};
use crate::tri::Tri;
use crate::value::{Field, Piece, Value};

impl Evaluator<'_> {
    /// `find ~ | while read f; do rm "$f"; done`, and the same by xargs and a network tool.
    pub fn acts_on_list(
        &mut self,
        name: &str,
        arguments: &[Field],
        call: &Call<'_>,
        state: &State,
    ) {
        let Some(input) = call.input else {
            return;
        };
        let from = |names: &[&str]| input.from.iter().any(|from| names.contains(&from.as_str()));
        if matches!(name, "xargs" | "parallel") {
            if from(&[ALL_CONTAINERS]) {
                self.removes_listed(arguments, call.span.clone());
            }
            let without_end = arguments.iter().any(|field| {
                field
                    .known()
                    .is_some_and(|t| t.strip_prefix("-P").or(t.strip_prefix("-j")).is_some())
            });
            if from(&["yes"]) && without_end {
                self.raise("fork-bomb", call.span.clone());
            }
            let sends = arguments
                .iter()
                .any(|field| field.known().is_some_and(|name| super::shells::is_sender(&name)));
            if sends && from(&[super::call::SECRETS, SECRET_VARIABLE, "env", "printenv"]) {
                self.raise("send-environment-argument", call.span.clone());
            }
        }
        let lists = ["pip", "pip3", "brew", "npm", "apt", "dpkg", "dpkg-query", "gem", "conda"];
        let removes = |f: &Field| {
            f.known().is_some_and(|text| matches!(text.as_ref(), "uninstall" | "remove" | "purge"))
        };
        if name == "xargs" && from(&lists) && arguments.iter().any(removes) {
            self.raise("uninstall-listed", call.span.clone());
        }
        if matches!(name, "sftp" | "ftp" | "lftp" | "tftp")
            && let Some(text) = &input.text
            && text.without_unknown().lines().any(|line| self.puts_secret(line, state))
        {
            self.raise("send-env-file-script", call.span.clone());
        }
        self.removes_found(name, arguments, call, state);
    }

    /// What `find` found, one by one: in a loop, or by xargs.
    fn removes_found(&mut self, name: &str, words: &[Field], call: &Call<'_>, state: &State) {
        let removes = |name: &str| matches!(name, "rm" | "shred" | "unlink" | "truncate");
        let open = |field: &Field| matches!(field.value.pieces[..], [Piece::Unknown | Piece::Many]);
        let by_xargs = matches!(name, "xargs" | "parallel")
            && words.iter().any(|field| field.known().is_some_and(|name| removes(&name)));
        let Some(input) = call.input.filter(|input| {
            let in_loop = removes(name) && words.iter().any(open);
            (in_loop || by_xargs) && input.from.iter().any(|from| from == "find")
        }) else {
            return;
        };
        let is_some = input.text.as_ref().is_some_and(|t| t.pieces.contains(&Piece::Name));
        let text = input.text.as_ref().map(Value::without_unknown).unwrap_or_default();
        // Some of what is in a home or on the machine; of the current directory that is everyday work.
        let elsewhere = |line: &str| !is_some || line.starts_with(['~', '/']);
        let whole = text.lines().any(|line| elsewhere(line) && self.is_everything(line, state));
        match (whole, is_some) {
            (true, true) => self.raise("delete-across-home", call.span.clone()),
            // By xargs it is judged as `rm -r` of the place.
            (true, false) if !by_xargs => self.raise("delete-everything", call.span.clone()),
            _ => {}
        }
    }

    /// `rm -rf '~'`: a home that the shell does not expand, but whoever reads it next may.
    pub fn removes_tilde(&mut self, name: &str, arguments: &[Field], span: Span) {
        let tilde =
            |field: &Field| field.known().is_some_and(|text| text == "~" || text.starts_with("~/"));
        if matches!(name, "rm" | "rmdir" | "shred") && arguments.iter().any(tilde) {
            self.raise("delete-named-tilde", span);
        }
    }

    /// `docker run -v ~:/h`: the whole home in a container.
    pub fn mounts_home(&mut self, name: &str, arguments: &[Field], span: Span) {
        if !matches!(name, "docker" | "podman" | "nerdctl") {
            return;
        }
        let mounts = |field: &Field| {
            // bash leaves `~:/h` as it is, other shells do not.
            let written = field.known().is_some_and(|text| text.starts_with("~:"));
            written
                || field.value.pieces.windows(2).any(|pair| match pair {
                    [Piece::Home, Piece::Text(rest)] => {
                        let rest = rest.strip_prefix('/').unwrap_or(rest);
                        rest.starts_with([':', ','])
                    }
                    _ => false,
                })
        };
        if arguments.iter().any(mounts) {
            self.raise("mount-home", span);
        }
    }

    /// What a loop over a home gives: the home, for all that is in it, or a pattern. One file by its name is none.
    pub fn is_each_of_everything(&self, value: &Value, state: &State) -> bool {
        let place = state.cwd.join(value);
        let class = self.context.rules.class("@everything").unwrap_or_default();
        let mut places = class.iter().filter_map(|entry| entry.place.as_ref());
        let is_one = |piece: &Piece| matches!(piece, Piece::Text(_) | Piece::Home);
        places.any(|pattern| place.is(pattern) == Tri::Yes)
            || !value.pieces.iter().all(is_one) && place.is(&Pattern::parse("~/*")) == Tri::Yes
    }

    fn is_everything(&self, path: &str, state: &State) -> bool {
        let mut value = Value::default();
        match path.strip_prefix('~') {
            Some(rest) => {
                value.push(Piece::Home);
                value.push_text(rest);
            }
            None => value.push_text(path),
        }
        let place = state.cwd.join(&value);
        let class = self.context.rules.class("@everything").unwrap_or_default();
        class.iter().filter_map(|entry| entry.place.as_ref()).any(|p| place.is(p) == Tri::Yes)
    }

    /// `docker ps -aq | xargs docker rm -f`.
    pub fn removes_listed(&mut self, words: &[Field], span: Span) {
        let is = |field: &Field, names: &[&str]| {
            field.known().is_some_and(|text| names.contains(&text.as_ref()))
        };
        let tool = words.iter().any(|field| is(field, &["docker", "podman", "nerdctl"]));
        if tool && words.iter().any(|field| is(field, &["rm", "rmi", "kill"])) {
            self.raise("docker-wipe-listed", span);
        }
    }

    /// `git branch -D $(…)`: every branch that a list shows.
    pub fn deletes_listed_branches(&mut self, name: &str, arguments: &[Field], span: Span) {
        let is = |word: &str| arguments.iter().any(|f| f.known().as_deref() == Some(word));
        let listed = arguments.iter().any(|field| field.value.is_many());
        let tags = is("tag") && (is("-d") || is("--delete"));
        if name == "git" && (is("branch") && is("-D") || tags) && listed {
            self.raise("delete-listed-branches", span);
        }
    }
}

/// `while true; do x & done`: starts without end, and waits for nothing.
pub fn starts_without_end(condition: &List, body: &List) -> bool {
    let always = condition.iter().any(|item| {
        item.first.stages.iter().any(|stage| matches!(bare_name(stage), Some("true" | ":")))
    });
    let waits = |item: &Item| {
        let pipelines = std::iter::once(&item.first).chain(item.rest.iter().map(|(_, next)| next));
        !item.background
            && pipelines.flat_map(|pipeline| &pipeline.stages).any(|stage| {
                matches!(
                    bare_name(stage),
                    Some("sleep" | "wait" | "read" | "inotifywait" | "break")
                )
            })
    };
    always && body.iter().any(|item| item.background) && !body.iter().any(waits)
}

fn bare_name(command: &Command) -> Option<&str> {
    match &command.kind {
        Kind::Simple { words, .. } => words.first().and_then(Word::bare),
        _ => None,
    }
}

/// Whether a listing names every container, image or volume of the machine.
pub fn lists_all_containers(arguments: &[Field]) -> bool {
    let words: Vec<String> =
        arguments.iter().filter_map(|field| field.known().map(|text| text.into_owned())).collect();
    let has = |wanted: &[&str]| words.iter().any(|word| wanted.contains(&word.as_str()));
    let filtered = words.iter().any(|word| word.starts_with("--filter") || word == "-f");
    let quiet = has(&["-q", "-aq", "-qa", "--quiet"]);
    let lists = has(&["ps", "images", "ls", "list"]);
    lists && quiet && !filtered
}
