//! Which variables of the environment a command of an agent should not get, and why.
//!
//! By name and by the shape of the value: a token is a token under any name. This list is for
//! what somebody lets through in bulk (`--env '*'`); what is passed by default is a short list of
//! harmless names, and a variable that a person names is theirs to give.

mod shapes;

use crate::wildcard;

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Concern {
    /// Opens something that is not the command's.
    Credential,
    /// Makes programs run other code than their own.
    Injection,
}

/// Why a variable is held back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Held {
    pub concern: Concern,
    pub reason: &'static str,
}

/// Whether a variable should be held back, and why. Names are compared as Windows does: `Path` is
/// `PATH`.
pub fn judge(name: &str, value: &str) -> Option<Held> {
    let name = name.to_ascii_uppercase();
    by_name(&name).or_else(|| {
        shapes::secret(value).map(|reason| Held { concern: Concern::Credential, reason })
    })
}

fn by_name(name: &str) -> Option<Held> {
    if HARMLESS.iter().any(|pattern| wildcard::matches(pattern, name)) {
        return None;
    }
    let named = |list: &[(&[&str], &'static str)], concern| {
        let found = list.iter().find(|(patterns, _)| {
            patterns.iter().any(|pattern| wildcard::matches(pattern, name))
        });
        found.map(|(_, reason)| Held { concern, reason })
    };
    named(INJECTION, Concern::Injection)
        .or_else(|| named(CREDENTIALS, Concern::Credential))
        .or_else(|| speaks_of_secrets(name))
}

/// Whole words of the name, so that `TOKENIZERS_PARALLELISM` passes.
fn speaks_of_secrets(name: &str) -> Option<Held> {
    let words: Vec<&str> = name.split(['_', '-', '.']).collect();
    let alone = words.iter().any(|word| WORDS.contains(word));
    let key = words
        .windows(2)
        .any(|pair| pair[1] == "KEY" && KEYS.contains(&pair[0]) || pair == ["ACCESS", "KEYID"]);
    (alone || key).then_some(Held {
        concern: Concern::Credential,
        reason: "its name says that it is a secret",
    })
}

const WORDS: &[&str] = &[
    "TOKEN", "TOKENS", "SECRET", "SECRETS", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL",
    "CREDENTIALS", "APIKEY", "PAT", "PGPASSWORD", "OAUTH", "JWT", "COOKIE", "PRIVKEY",
    "ACCESSKEY", "SECRETKEY", "AUTHTOKEN", "BEARER",
];

const KEYS: &[&str] = &[
    "API", "ACCESS", "PRIVATE", "SIGNING", "ENCRYPTION", "MASTER", "SECRET", "SSH", "DEPLOY",
    "ACCOUNT", "STORAGE", "SERVICE", "LICENSE", "APP", "STRIPE", "GPG", "AUTH", "SESSION",
];

/// Looked at first: names that a pattern below would catch, and that do no harm.
const HARMLESS: &[&str] = &[
    "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_DATE", "GIT_COMMITTER_NAME",
    "GIT_COMMITTER_EMAIL", "GIT_COMMITTER_DATE", "GIT_TERMINAL_PROMPT", "GIT_OPTIONAL_LOCKS",
    "GIT_CEILING_DIRECTORIES", "GIT_MERGE_AUTOEDIT",
    "PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "PYTHONIOENCODING", "PYTHONUTF8",
    "PYTHONHASHSEED", "PYTHONFAULTHANDLER", "PYTHONNOUSERSITE", "PYTHONDEVMODE",
    "NPM_CONFIG_CACHE", "NPM_CONFIG_LOGLEVEL", "NPM_CONFIG_UPDATE_NOTIFIER", "NPM_CONFIG_FUND",
    "NPM_CONFIG_AUDIT", "NPM_CONFIG_COLOR", "NPM_CONFIG_OFFLINE",
    "PIP_CACHE_DIR", "PIP_DISABLE_PIP_VERSION_CHECK", "PIP_NO_CACHE_DIR", "PIP_NO_INPUT",
    "LD_RUN_PATH",
];

type Table = [(&'static [&'static str], &'static str)];

const CREDENTIALS: &Table = &[
    (&["AWS_ACCESS_KEY_ID", "AWS_SECRET*", "AWS_SESSION*", "AWS_SECURITY*", "AWS_PROFILE", "AWS_SHARED*", "AWS_CONFIG_FILE", "AWS_WEB_IDENTITY*", "AWS_CONTAINER_*"], "it opens an AWS account"),
    (&["GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CREDENTIALS", "CLOUDSDK_*", "GCP_*", "GCLOUD_*"], "it opens a Google Cloud account"),
    (&["AZURE_*", "ARM_CLIENT_*", "MSI_*", "IDENTITY_ENDPOINT", "IDENTITY_HEADER"], "it opens an Azure account"),
    (&["SSH_AUTH_SOCK", "SSH_AGENT_PID", "SSH_CONNECTION", "SSH_CLIENT"], "it leads to the user's ssh keys or session"),
    (&["GPG_AGENT_INFO", "GNUPGHOME"], "it leads to the user's GPG keys"),
    (&["DBUS_SESSION_BUS_ADDRESS", "DBUS_SYSTEM_BUS_ADDRESS"], "it leads to the user's session, which can start programs outside"),
    (&["DOCKER_HOST", "DOCKER_CONFIG", "DOCKER_CERT_PATH", "DOCKER_AUTH_CONFIG", "CONTAINER_HOST", "KUBECONFIG", "PODMAN_*"], "it leads to containers or clusters of the user"),
    (&["XAUTHORITY", "DISPLAY", "WAYLAND_DISPLAY", "XDG_RUNTIME_DIR"], "it leads to the user's screen and keyboard, or to sockets of the session"),
    (&["VAULT_*", "CONSUL_HTTP_*", "NOMAD_*"], "it opens a secret store"),
    (&["PGPASSFILE", "PGSERVICEFILE", "MYSQL_PWD", "REDISCLI_AUTH", "MYSQL_HOME"], "it opens a database"),
    (&["NETRC", "CURL_HOME", "WGETRC", "GIT_ASKPASS", "NPM_CONFIG_USERCONFIG", "NPM_CONFIG__AUTH*", "PIP_CONFIG_FILE", "COMPOSER_AUTH", "BUNDLE_*__*", "CARGO_REGISTRIES_*_TOKEN", "TWINE_*", "UV_PUBLISH_*"], "it names or holds a login for a package index or a host"),
    (&["KRB5CCNAME", "KRB5_CONFIG", "KRB5_KTNAME"], "it leads to Kerberos tickets"),
    (&["SSLKEYLOGFILE"], "programs write the keys of their connections there"),
    (&["*_DSN", "*CONNECTION_STRING*", "SENTRY_AUTH*"], "connection strings hold passwords"),
];

const INJECTION: &Table = &[
    (&["LD_*", "DYLD_*", "GCONV_PATH", "LOCPATH", "NLSPATH", "GLIBC_TUNABLES", "GETCONF_DIR", "HOSTALIASES", "RES_OPTIONS", "MALLOC_*", "RESOLV_*"], "the loader or the C library obeys it: any program can be made to run foreign code"),
    (&["BASH_ENV", "ENV", "BASH_FUNC_*", "SHELLOPTS", "BASHOPTS", "PS4", "PROMPT_COMMAND", "IFS", "CDPATH", "GLOBIGNORE", "ZDOTDIR", "FPATH", "INPUTRC", "FCEDIT"], "shells run it, or read commands differently because of it"),
    (&["NODE_OPTIONS", "NODE_PATH", "NODE_REPL_EXTERNAL_MODULE", "NODE_REPL_HISTORY", "NODE_TLS_REJECT_UNAUTHORIZED", "ELECTRON_RUN_AS_NODE", "BUN_*", "DENO_*", "TS_NODE_*"], "Node and its like load code or drop checks because of it"),
    (&["PYTHON*"], "Python loads code from where it says, or starts differently"),
    (&["PERL5*", "PERLLIB", "PERL_*", "RUBYOPT", "RUBYLIB", "RUBY_*", "GEM_HOME", "GEM_PATH", "BUNDLE_GEMFILE", "LUA_*", "PHPRC", "PHP_INI_SCAN_DIR", "R_PROFILE*", "R_ENVIRON*", "R_LIBS*", "JULIA_LOAD_PATH", "ERL_*", "ELIXIR_ERL_OPTIONS", "TCLLIBPATH"], "an interpreter loads code from where it says"),
    (&["JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "JAVA_OPTS", "CLASSPATH", "MAVEN_OPTS", "MAVEN_ARGS", "GRADLE_OPTS", "ANT_OPTS", "SBT_OPTS", "KOTLIN_*"], "Java loads code or agents because of it"),
    (&["DOTNET_STARTUP_HOOKS", "DOTNET_ADDITIONAL_DEPS", "DOTNET_SHARED_STORE", "COR_*", "CORECLR_*", "COMPLUS_*", "PSMODULEPATH", "PATHEXT", "COMSPEC", "__COMPAT_LAYER"], ".NET or Windows loads code because of it"),
    (&["GIT_*"], "git runs programs that it names, or works on another repository"),
    (&["EDITOR", "VISUAL", "PAGER", "MANPAGER", "BROWSER", "LESSOPEN", "LESSCLOSE", "LESS", "SUDO_ASKPASS", "SSH_ASKPASS*", "SUDO_EDITOR", "SYSTEMD_EDITOR", "HGEDITOR", "HGRCPATH", "VIMINIT", "EXINIT", "VIM", "VIMRUNTIME", "EMACSLOADPATH", "TERMINFO*", "TERMCAP", "DELTA_PAGER", "BAT_PAGER"], "other programs run what it names"),
    (&["RUSTC", "RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER", "RUSTDOC", "CARGO_*_RUNNER", "CARGO_*_LINKER", "CARGO_BUILD_*", "CARGO_ENCODED_RUSTFLAGS", "GOFLAGS", "GOTOOLCHAIN", "GOENV", "CGO_*", "CMAKE_TOOLCHAIN_FILE", "CONFIG_SITE", "MAKEFLAGS", "MFLAGS", "MAKEFILES", "CCACHE_PREFIX*", "DISTCC_*"], "build tools run what it names"),
    (&["NPM_CONFIG_*", "YARN_*", "PNPM_*", "PIP_*", "UV_*", "POETRY_*", "CONDA_*", "COREPACK_*", "BUNDLE_PATH", "HOMEBREW_*"], "package managers fetch from, or run, what it names"),
    (&["OPENSSL_CONF", "OPENSSL_MODULES", "OPENSSL_ENGINES", "PKCS11_*", "GIO_EXTRA_MODULES", "GTK_MODULES", "GTK_PATH", "QT_PLUGIN_PATH", "QT_QPA_*", "GST_PLUGIN_*", "MAGICK_*", "VK_*", "LIBGL_DRIVERS_PATH", "LIBVA_*", "ALSA_*", "PROJ_LIB", "GDAL_*"], "libraries load modules from where it says"),
    (&["TAR_OPTIONS", "GREP_OPTIONS", "RSYNC_RSH", "RSYNC_*", "CVS_RSH", "ZIPOPT", "UNZIP", "RIPGREP_CONFIG_PATH", "POSIXLY_CORRECT", "JQ_*", "ACK_OPTIONS", "TMUX*", "STY", "SCREENRC", "WGETRC"], "a tool behaves differently, or runs a program, because of it"),
];

/// What is left of an environment, and what was held back.
pub fn sanitize(
    variables: impl IntoIterator<Item = (String, String)>,
) -> (Vec<(String, String)>, Vec<(String, Held)>) {
    let (mut kept, mut held) = (Vec::new(), Vec::new());
    for (name, value) in variables {
        match judge(&name, &value) {
            Some(why) => held.push((name, why)),
            None => kept.push((name, value)),
        }
    }
    (kept, held)
}

#[cfg(test)]
mod tests;
