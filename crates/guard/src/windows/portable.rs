//! Programs that take the same words on every system, such as git, docker and npm: they are judged as in a POSIX
//! shell. Also what a Windows text puts into files and fetches, so that running it is seen.

use std::ops::Range;

use super::powershell::FETCHERS;
use crate::evaluate::{Call, Evaluator, SECRETS, State, is_fetched};
use crate::value::{Field, Output, Piece, Value};

const PORTABLE: &[&str] = &[
    "git",
    "gh",
    "glab",
    "docker",
    "docker-compose",
    "podman",
    "nerdctl",
    "kubectl",
    "oc",
    "helm",
    "terraform",
    "tofu",
    "terragrunt",
    "pulumi",
    "cdk",
    "aws",
    "gcloud",
    "gsutil",
    "az",
    "heroku",
    "fly",
    "flyctl",
    "vercel",
    "netlify",
    "firebase",
    "supabase",
    "doctl",
    "npm",
    "npx",
    "pnpm",
    "yarn",
    "bun",
    "bunx",
    "deno",
    "pip",
    "pip3",
    "pipx",
    "uv",
    "uvx",
    "poetry",
    "pdm",
    "conda",
    "mamba",
    "cargo",
    "rustup",
    "go",
    "gem",
    "composer",
    "twine",
    "ssh",
    "scp",
    "sftp",
    "ssh-keygen",
    "ssh-add",
    "curl",
    "wget",
    "tar",
    "openssl",
    "gpg",
    "psql",
    "dropdb",
    "sqlcmd",
    "mariadb",
    "sqlplus",
    "cqlsh",
    "duckdb",
    "pg_dump",
    "mysql",
    "mysqladmin",
    "mysqldump",
    "mongosh",
    "mongo",
    "redis-cli",
    "sqlite3",
    "ngrok",
    "cloudflared",
    "rclone",
    "rsync",
    "ncat",
    "nc",
    "vagrant",
    "code",
    "cursor",
    "op",
    "bw",
    "vault",
    "sops",
    "python",
    "python3",
    "py",
    "node",
    "ruby",
    "perl",
    "php",
    "java",
    "make",
    "dig",
    "nslookup",
    "ftp",
    "tftp",
    "mc",
    "s3cmd",
    "croc",
    "wormhole",
    "tailscale",
    "nmap",
    "7z",
    "zip",
    "unzip",
];

/// Cmdlets that are given statements for a database, as a program is elsewhere.
const SQL_CMDLETS: &[&str] =
    &["invoke-sqlcmd", "invoke-dbaquery", "invoke-mysqlquery", "invoke-sqlquery"];

/// Stands among the programs of an output that holds the environment.
pub const ENVIRONMENT: &str = "env";

/// Stands among the programs of a directory that a fetched archive was unpacked into.
const UNPACKED: &str = "expand-archive";

pub fn is_portable(name: &str) -> bool {
    PORTABLE.contains(&name)
}

pub fn holds_secret(output: &Output) -> bool {
    output.from.iter().any(|from| from == SECRETS || from == ENVIRONMENT)
}

impl Evaluator<'_> {
    /// Judges a program that is the same everywhere; `None` where it is not one of them.
    pub(super) fn portable(
        &mut self,
        name: &str,
        arguments: &[Field],
        writes: &[Field],
        input: Option<&Output>,
        span: Range<usize>,
    ) -> Option<Output> {
        if !PORTABLE.contains(&name) && !SQL_CMDLETS.contains(&name) {
            return None;
        }
        let name = match name {
            "py" => "python",
            name if SQL_CMDLETS.contains(&name) => "sqlcmd",
            name => name,
        };
        let mut words = vec![Field::new(Value::text(name), span.clone())];
        words.extend(arguments.iter().map(posix));
        let writes: Vec<Field> = writes.iter().map(posix).collect();
        // What a cmdlet fetched is what curl would have fetched.
        let fetched =
            input.filter(|input| input.from.iter().any(|from| FETCHERS.contains(&from.as_str())));
        let fetched = fetched.map(|input| {
            let mut input = input.clone();
            input.passed(["curl".to_owned()]);
            input
        });
        let input = fetched.as_ref().or(input);
        let call = Call { input, writes: &writes, reads: &[], assigns: &[], span };
        let mut state = std::mem::take(&mut self.windows.posix);
        let output = self.call(&words, &call, &mut state);
        self.windows.posix = state;
        Some(output)
    }

    /// Remembers what a command put into a file.
    pub(super) fn keeps(&mut self, file: &Field, output: Output) {
        if let Some(path) = posix(file).known() {
            self.windows.posix.keep_file(&path.to_lowercase(), output.clone());
            self.windows.posix.keep_file(&path, output);
        }
    }

    /// What the text itself put into the file of this name.
    pub(super) fn kept(&self, file: &Field) -> Option<std::rc::Rc<Output>> {
        let posix = posix(file);
        let path = posix.known()?;
        self.windows.posix.file(&path).or_else(|| self.windows.posix.file(&path.to_lowercase()))
    }

    /// `Expand-Archive x.zip dir` of an archive that the text fetched: what is in the directory was fetched.
    pub(super) fn unpacks(&mut self, name: &str, arguments: &[Field]) {
        let mut operands = arguments.iter().filter(|field| !field.value.starts_with('-'));
        if name != "expand-archive" {
            return;
        }
        let fetched = operands
            .next()
            .and_then(|archive| self.kept(archive))
            .is_some_and(|kept| is_fetched(&kept));
        if let Some(directory) = operands.next().filter(|_| fetched) {
            let mut output = Output::unknown("curl");
            output.passed([UNPACKED.to_owned()]);
            self.keeps(directory, output);
        }
    }

    /// Whether a file is below a directory that a fetched archive was unpacked into.
    fn is_unpacked(&self, file: &Field) -> bool {
        let path = posix(file).known().map(|path| path.into_owned()).unwrap_or_default();
        path.match_indices('/').any(|(at, _)| {
            let above = Field::new(Value::text(&path[..at]), file.span.clone());
            self.kept(&above).is_some_and(|kept| kept.from.iter().any(|from| from == UNPACKED))
        })
    }

    /// A program that the text fetched, or one of another machine's shares.
    pub(super) fn starts_file(&mut self, file: &Field) {
        if self.kept(file).is_some_and(|kept| is_fetched(&kept)) || self.is_unpacked(file) {
            self.raise("download-to-shell", file.span.clone());
        }
        if file.value.without_unknown().starts_with("\\\\") {
            self.raise("program-of-share", file.span.clone());
        }
    }

    /// Marks the output of a command that shows a file with secrets.
    pub(super) fn shows(&self, arguments: &[Field], mut output: Output) -> Output {
        let secret = |field: &Field| {
            let field = posix(field);
            crate::evaluate::holds_secrets(&field) || self.is_secret_file(&field, &State::new())
        };
        if arguments.iter().any(secret) {
            output.passed([SECRETS.to_owned()]);
        }
        output
    }
}

/// A word as a POSIX shell would have it: `C:\Users\ann\.ssh` is `~/.ssh`, another drive's root is the root.
fn posix(field: &Field) -> Field {
    let mut value = Value::default();
    for (at, piece) in field.value.pieces.iter().enumerate() {
        match piece {
            Piece::Text(text) if at == 0 => start(&text.replace('\\', "/"), &mut value),
            Piece::Text(text) => value.push_text(&text.replace('\\', "/")),
            piece => value.push(piece.clone()),
        }
    }
    Field { value, span: field.span.clone(), feed: field.feed.clone() }
}

fn start(text: &str, value: &mut Value) {
    let below_home = |rest: &str| rest.is_empty() || rest.starts_with('/');
    if let Some(rest) = text.strip_prefix('~').filter(|rest| below_home(rest)) {
        value.push(Piece::Home);
        return value.push_text(rest);
    }
    let mut chars = text.chars();
    let drive = chars.next().is_some_and(|c| c.is_ascii_alphabetic()) && chars.next() == Some(':');
    let Some(path) = Some(chars.as_str()).filter(|path| drive && path.starts_with('/')) else {
        return value.push_text(text);
    };
    let lower = path.to_lowercase();
    let name = lower.strip_prefix("/users/").map(|rest| rest.split('/').next().unwrap_or_default());
    match name.filter(|name| !name.is_empty()) {
        Some(name) => {
            value.push(Piece::Home);
            value.push_text(&path["/users/".len() + name.len()..]);
        }
        None => value.push_text(path),
    }
}
