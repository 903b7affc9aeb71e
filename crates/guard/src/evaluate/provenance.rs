//! Where things in a text come from and go to: trees fetched from strangers, lists of everything, data in names
//! that are looked up, registries named by variables.

use super::Evaluator;
use super::state::State;
use crate::place::Place;
use crate::rules::address;
use crate::shell::ast::Span;
use crate::tri::Tri;
use crate::value::{Field, Output, Piece, Value};
use crate::wildcard;

/// Stands among the programs of an output that came from an address that is not well known.
pub const STRANGER: &str = "(stranger)";

/// The same for a list of all containers, images or volumes.
pub const ALL_CONTAINERS: &str = "(all containers)";

/// What substitutions in the words being expanded print.
#[derive(Default)]
pub struct Prints {
    /// The environment, or a file with secrets.
    pub environment: bool,
    /// Who or which machine this is.
    pub identity: bool,
    /// What was encoded.
    pub decoded: bool,
    pub all_containers: bool,
    /// A variable of the environment that holds a key or a password by its name.
    pub secret_variable: bool,
}

impl Prints {
    pub fn merge(&mut self, other: Prints) {
        self.environment |= other.environment;
        self.identity |= other.identity;
        self.decoded |= other.decoded;
        self.all_containers |= other.all_containers;
        self.secret_variable |= other.secret_variable;
    }

    pub fn add(&mut self, output: &Output) {
        let through =
            |names: &[&str]| output.from.iter().any(|from| names.contains(&from.as_str()));
        self.environment |= through(&["env", "printenv", super::call::SECRETS]);
        self.identity |= through(&["whoami", "hostname", "id", "ifconfig", "logname"]);
        self.decoded |= super::shells::is_decoded(output);
        self.all_containers |= through(&[ALL_CONTAINERS]);
    }
}

/// Stands among the programs of an output that holds such a variable.
pub const SECRET_VARIABLE: &str = "(secret variable)";

/// Whether a variable holds a key or a password, by its name.
pub fn names_secret(name: &str) -> bool {
    let parts = [
        "SECRET",
        "PASSWORD",
        "PASSWD",
        "PRIVATE_KEY",
        "SSH_KEY",
        "ACCESS_KEY",
        "DATABASE_URL",
        "AUTH_TOKEN",
        "GITHUB_TOKEN",
        "GH_TOKEN",
        "NPM_TOKEN",
        "GITLAB_TOKEN",
        "SLACK_TOKEN",
        "AWS_SESSION_TOKEN",
        "OPENAI_API_KEY",
        "ANTHROPIC_API_KEY",
        "STRIPE_",
        "VAULT_TOKEN",
        "CREDENTIALS",
        "MNEMONIC",
        "KUBECONFIG_DATA",
        "HF_TOKEN",
        "PYPI_TOKEN",
        "DOCKER_AUTH",
    ];
    parts.iter().any(|part| name.contains(part))
}

/// Words that say who is asking: a token belongs there.
fn authenticates(text: &str) -> bool {
    let text = text.to_lowercase();
    let parts =
        ["authorization", "token:", "key:", "auth:", "cookie:", "client_secret=", "grant_type"];
    parts.iter().any(|part| text.contains(part))
}

/// Variables that name where packages come from.
const SOURCES: &[&str] = &[
    "PIP_INDEX_URL",
    "PIP_EXTRA_INDEX_URL",
    "PIP_FIND_LINKS",
    "UV_INDEX*",
    "UV_DEFAULT_INDEX",
    "UV_EXTRA_INDEX_URL",
    "NPM_CONFIG_REGISTRY",
    "npm_config_registry",
    "YARN_REGISTRY",
    "YARN_NPM_REGISTRY_SERVER",
    "GOPROXY",
    "CARGO_REGISTRIES_*_INDEX",
    "RUSTUP_DIST_SERVER",
    "RUSTUP_UPDATE_ROOT",
    "CONDA_CHANNEL_ALIAS",
    "BUNDLE_MIRROR*",
    "HOMEBREW_*_GIT_REMOTE",
    "HOMEBREW_BOTTLE_DOMAIN",
];

const LOOKUPS: &[&str] = &[
    "dig",
    "host",
    "nslookup",
    "drill",
    "ping",
    "ping6",
    "kdig",
    "resolvectl",
    "getent",
    "ssh-keyscan",
    "whois",
];

impl Evaluator<'_> {
    /// `PIP_INDEX_URL=http://…`, `GOSUMDB=off`.
    pub fn source_variable(&mut self, name: &str, value: &Value, span: Span) {
        let text = value.without_unknown();
        let named = SOURCES.iter().any(|pattern| wildcard::matches(pattern, name));
        let foreign = text
            .split([',', '|', ' '])
            .filter_map(address::of)
            .any(|address| address::is_foreign(&address, &self.context.rules));
        let unchecked = name == "GOSUMDB" && text == "off" || name == "GONOSUMDB" && text == "*";
        if named && foreign || unchecked {
            self.raise("source-variable", span);
        }
    }

    /// A key or password of the environment in the words of a network tool, other than to authenticate.
    pub fn sends_secret_variable(&mut self, fields: &[Field], secrets: &[usize], span: Span) {
        let name = fields.first().and_then(|field| field.known());
        // Others are told a password because it is theirs: `redis-cli -a "$PASSWORD"`.
        let sender = name.is_some_and(|name| {
            super::shells::is_fetcher(&name) || LOOKUPS.contains(&name.as_ref()) || name == "mail"
        });
        let sent = |at: &&usize| {
            let option = fields.get(at.wrapping_sub(1)).and_then(|field| field.known());
            let user = option.is_some_and(|option| {
                matches!(option.as_ref(), "-u" | "--user" | "--password" | "-w" | "--oauth2-bearer")
            });
            let text = fields.get(**at).map(|field| field.value.without_unknown());
            !user && !text.is_some_and(|text| authenticates(&text))
        };
        if sender && secrets.iter().any(|at| sent(&at)) {
            self.raise("send-secret-variable", span);
        }
    }

    /// `read x < .env`: the variable holds what the file held.
    pub fn reads_secret(
        &mut self,
        name: &str,
        arguments: &[Field],
        input: Option<&Output>,
        state: &mut State,
    ) {
        if !matches!(name, "read" | "mapfile" | "readarray") {
            return;
        }
        let kept = [super::call::SECRETS, "env", "printenv"];
        let secret = input.is_some_and(|i| i.from.iter().any(|f| kept.contains(&f.as_str())));
        let names = arguments.iter().filter_map(|field| field.known());
        for name in names.filter(|name| !name.starts_with('-')) {
            state.mark_secret(&name, secret);
        }
    }

    /// `put .env`, in the language of ftp.
    pub fn puts_secret(&self, line: &str, state: &State) -> bool {
        let mut words = line.split_whitespace();
        let puts =
            words.next().is_some_and(|verb| matches!(verb, "put" | "mput" | "send" | "mirror"));
        puts && words.any(|word| {
            let field = Field::new(Value::text(word), 0..0);
            super::call::holds_secrets(&field) || self.is_secret_file(&field, state)
        })
    }

    /// `PATH=/tmp/x:$PATH`: programs and libraries from where anybody can put them.
    pub fn planted_path(&mut self, name: &str, value: &Value, span: Span) {
        let text = value.without_unknown();
        let paths = ["PATH", "PYTHONPATH", "NODE_PATH", "PERL5LIB", "RUBYLIB", "LD_LIBRARY_PATH"];
        let places = ["/tmp", "/var/tmp", "/dev/shm"];
        let planted = places.iter().any(|place| {
            text.strip_prefix(place)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', ':']))
        });
        // Without the usual directories every program is another one.
        let replaced = name == "PATH"
            && value.known().is_some_and(|text| !text.split(':').any(|at| at.ends_with("/bin")));
        let first = name == "PATH" && text.starts_with(".:");
        if paths.contains(&name) && (planted || replaced || first) {
            self.raise("planted-path", span);
        }
    }

    /// Remembers that a tree of a stranger is here, and tells when a program of it is run.
    pub fn strange_tree(
        &mut self,
        name: &str,
        first: &Field,
        arguments: &[Field],
        input: Option<&Output>,
        state: &mut State,
    ) {
        let piped = input.is_some_and(|input| input.from.iter().any(|from| from == STRANGER));
        let is = |at: usize, word: &str| {
            arguments.get(at).is_some_and(|field| field.known().as_deref() == Some(word))
        };
        let from_stranger = |field: &Field| {
            let file = field.known().and_then(|path| state.file(&path));
            file.is_some_and(|file| file.from.iter().any(|from| from == STRANGER))
        };
        match name {
            "git" if is(0, "clone") => state.strange_tree |= self.names_stranger(arguments),
            "scp" | "rsync" | "sftp" => self.copied_from_stranger(arguments, state),
            _ if from_stranger(first) => {
                self.raise("run-unpacked-download", first.span.clone());
            }
            "tar" | "bsdtar" | "unzip" | "7z" | "gunzip" | "unrar" => {
                state.strange_tree |= piped || arguments.iter().any(from_stranger);
            }
            _ if !state.strange_tree => {}
            _ => {
                let local = |field: &Field| {
                    field.known().is_some_and(|path| {
                        path.contains('/')
                            && (path.starts_with("/tmp/") || !path.starts_with(['/', '~']))
                            && !path.contains("://")
                    })
                };
                let runs_argument =
                    super::shells::is_shell(name) || super::foreign::is_interpreter(name);
                let script = arguments.iter().find(|field| !field.value.starts_with('-'));
                let runs = local(first)
                    || matches!(name, "make" | "gmake" | "ninja" | "rake")
                    || matches!(name, "npm" | "pip" | "pip3" | "yarn" | "pnpm" | "bun" | "cargo")
                        && (is(0, "install")
                            || is(0, "i")
                            || is(0, "ci")
                            || is(0, "run")
                            || arguments.is_empty())
                    || runs_argument
                        && script.is_some_and(|f| f.known().is_some_and(|path| path.contains('.')));
                if runs {
                    self.raise("run-unpacked-download", first.span.clone());
                }
            }
        }
    }

    /// `scp user@host:x /tmp/x`: the last word is a file here that another machine's user wrote.
    fn copied_from_stranger(&mut self, arguments: &[Field], state: &mut State) {
        let [from @ .., to] = arguments else {
            return;
        };
        let (Some(target), true) = (to.known(), self.names_stranger(from)) else {
            return;
        };
        let Some(source) = from.last().map(|field| field.value.without_unknown()) else {
            return;
        };
        let name = source.rsplit(['/', ':']).next().unwrap_or_default();
        let file = match target.strip_suffix('/') {
            _ if target == "." => format!("./{name}"),
            Some(directory) => format!("{directory}/{name}"),
            None => target.into_owned(),
        };
        let mut saved = Output::unknown("scp");
        saved.passed([STRANGER.to_owned()]);
        self.keep_files(&[Field::new(Value::text(file), to.span.clone())], &saved, state);
    }

    /// Whether a downloader's words name a machine that is not well known, with or without a scheme.
    pub fn fetches_from_stranger(&self, arguments: &[Field]) -> bool {
        let schemes = arguments.iter().any(|field| field.value.without_unknown().contains("://"));
        let bare = |field: &Field| {
            let text = field.known()?;
            let host = text.split('/').next().unwrap_or_default();
            let named = host.contains('.') && !host.starts_with(['.', '-']) && text.contains('/');
            named.then(|| address::of(&format!("http://{text}"))).flatten()
        };
        self.names_stranger(arguments)
            || !schemes
                && arguments
                    .iter()
                    .filter_map(bare)
                    .any(|address| address::is_foreign(&address, &self.context.rules))
    }

    /// Whether an address among the words is not a well-known one.
    pub fn names_stranger(&self, arguments: &[Field]) -> bool {
        arguments
            .iter()
            .filter_map(|field| address::of(&field.value.without_unknown()))
            .any(|address| address::is_foreign(&address, &self.context.rules))
    }

    /// `dig $data.example.net`: what comes first in the name is not known, the rest is a domain.
    pub fn lookup_of_data(&mut self, name: &str, arguments: &[Field]) {
        if !LOOKUPS.contains(&name) {
            return;
        }
        let built = arguments.iter().find(|field| match &field.value.pieces[..] {
            [Piece::Unknown | Piece::Many | Piece::Name, Piece::Text(rest), more @ ..] => {
                let more = Value { pieces: more.to_vec() }.without_unknown();
                let dots = format!("{rest}{more}").trim_end_matches('.').matches('.').count();
                rest.starts_with('.') && dots > 1
            }
            _ => false,
        });
        if let Some(field) = built {
            self.raise("send-dns", field.span.clone());
        }
    }

    /// Whether it is a file of the class that the rules keep secrets in.
    pub fn is_secret_file(&self, field: &Field, state: &State) -> bool {
        let leads_out = |piece: &Piece| match piece {
            Piece::Text(text) => text.contains('/'),
            piece => *piece == Piece::Home,
        };
        // Most words are names of the project's own files.
        if state.cwd == Place::start() && !field.value.pieces.iter().any(leads_out) {
            return false;
        }
        let Some(class) = self.context.rules.class("@secret-file") else {
            return false;
        };
        let place = state.cwd.join(&field.value);
        let is = |except: bool| {
            let of = class.iter().filter(move |entry| entry.except == except);
            of.filter_map(|entry| entry.place.as_ref()).any(|wanted| place.is(wanted) == Tri::Yes)
        };
        is(false) && !is(true)
    }
}
