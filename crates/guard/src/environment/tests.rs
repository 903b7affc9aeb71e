use proptest::prelude::*;

use super::*;

#[test]
fn what_is_held_back_by_name() {
    for name in [
        "GITHUB_TOKEN",
        "github_token",
        "AWS_SECRET_ACCESS_KEY",
        "OPENAI_API_KEY",
        "DB_PASSWORD",
        "SSH_AUTH_SOCK",
        "NPM_TOKEN",
        "STRIPE_SECRET",
        "MY_APIKEY",
        "SLACK_OAUTH",
        "KUBECONFIG",
        "DOCKER_HOST",
        "DBUS_SESSION_BUS_ADDRESS",
        "GH_PAT",
        "VAULT_ADDR",
        "PGPASSWORD",
        "XAUTHORITY",
    ] {
        let held = judge(name, "x").unwrap_or_else(|| panic!("{name}"));
        assert_eq!(held.concern, Concern::Credential, "{name}");
    }
    for name in [
        "LD_PRELOAD",
        "ld_preload",
        "LD_LIBRARY_PATH",
        "DYLD_INSERT_LIBRARIES",
        "NODE_OPTIONS",
        "PYTHONPATH",
        "PYTHONSTARTUP",
        "BASH_ENV",
        "ENV",
        "BASH_FUNC_ls%%",
        "GIT_SSH_COMMAND",
        "GIT_DIR",
        "PERL5OPT",
        "RUBYOPT",
        "JAVA_TOOL_OPTIONS",
        "IFS",
        "PROMPT_COMMAND",
        "EDITOR",
        "npm_config_script_shell",
        "RUSTC_WRAPPER",
        "DOTNET_STARTUP_HOOKS",
        "GCONV_PATH",
        "PAGER",
    ] {
        let held = judge(name, "x").unwrap_or_else(|| panic!("{name}"));
        assert_eq!(held.concern, Concern::Injection, "{name}");
    }
}

#[test]
fn what_passes() {
    for (name, value) in [
        ("LANG", "de_DE.UTF-8"),
        ("TZ", "Europe/Berlin"),
        ("TERM", "xterm"),
        ("PATH", "/usr/bin:/bin"),
        ("HOME", "/home/ann"),
        ("NODE_ENV", "test"),
        ("TOKENIZERS_PARALLELISM", "false"),
        ("KEYBOARD", "de"),
        ("PYTHONUNBUFFERED", "1"),
        ("GIT_AUTHOR_NAME", "Ann"),
        ("CI", "true"),
        ("DEBUG", "app:*"),
        ("PORT", "8080"),
        ("CARGO_TERM_COLOR", "always"),
        ("RUST_LOG", "info"),
        ("DATABASE_URL", "postgres://localhost/app"),
        ("HTTP_PROXY", "http://proxy:3128"),
        ("SECRETARY", "Bob"),
        ("npm_config_cache", "/tmp/npm"),
        ("MONKEY", "x"),
        ("CC", "clang"),
        ("SSL_CERT_FILE", "/etc/ssl/cert.pem"),
        ("USER", "ann"),
        ("BUILD_ID", "sk-1"),
    ] {
        assert_eq!(judge(name, value), None, "{name}");
    }
}

#[test]
fn what_is_held_back_by_value() {
    for value in [
        "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
        "github_pat_11AAAAAAA0abcdefghijkl",
        "sk-ant-api03-abcdefghijklmnop",
        "AKIAIOSFODNN7EXAMPLE",
        "xoxb-123456789012-abcdefghijkl",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0x.c2lnbmF0dXJlMTIz",
        "-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n-----END OPENSSH PRIVATE KEY-----",
        "postgres://app:hunter2@db.internal/app",
        "http://user:pass@proxy:3128",
        "amqp://a:b@x/ , amqp://c:d@y/",
    ] {
        let held = judge("HARMLESS_NAME", value).unwrap_or_else(|| panic!("{value}"));
        assert_eq!(held.concern, Concern::Credential);
    }
}

#[test]
fn reasons_never_repeat_the_value() {
    let Sanitized { kept, held } = sanitize([
        ("A".to_owned(), "1".to_owned()),
        ("B".to_owned(), "ghp_abcdefghijklmnopqrstuvwxyz0123456789".to_owned()),
        ("LD_PRELOAD".to_owned(), "/tmp/x.so".to_owned()),
    ]);
    assert_eq!(kept, [("A".to_owned(), "1".to_owned())]);
    assert_eq!(held.len(), 2);
    assert!(!format!("{held:?}").contains("ghp_"));
}

proptest! {
    #[test]
    fn no_variable_panics(name in ".*", value in ".*") {
        judge(&name, &value);
    }

    #[test]
    fn a_token_is_found_under_any_name(name in "[A-Z_]{1,12}") {
        prop_assert!(judge(&name, "ghp_abcdefghijklmnopqrstuvwxyz0123456789").is_some()
            || HARMLESS.contains(&name.as_str()));
    }
}
