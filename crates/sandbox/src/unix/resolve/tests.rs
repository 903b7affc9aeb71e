use super::*;
use crate::core::request::PlaceKind;
use crate::unix::fixture::Fixture;

#[test]
fn variables_show_their_files_and_never_the_host() {
    let f = Fixture::new();
    let bundle = f.file("bundle.pem", "");
    let link = f.link("link.pem", &bundle);
    let mut shown = Vec::new();
    let mut links = Vec::new();
    let env: Vec<(OsString, OsString)> = [
        ("SSL_CERT_FILE", link.as_path()),
        ("SSL_CERT_DIR", Path::new("/")),
        ("CURL_CA_BUNDLE", Path::new("/proc/self/environ")),
        ("NODE_EXTRA_CA_CERTS", Path::new("relative.pem")),
        ("REQUESTS_CA_BUNDLE", &f.path("missing")),
        ("OTHER", &f.home()),
    ]
    .map(|(name, path)| (name.into(), path.into()))
    .to_vec();
    let unshown = show_variables(&env, &Writable::default(), &mut shown, &mut links);
    assert_eq!(unshown, []);
    assert_eq!(shown, [Place { path: bundle.clone(), kind: PlaceKind::File }]);
    assert_eq!(links, [Link { at: link, to: bundle }]);
}

#[test]
fn path_inside_leads_to_what_was_located() {
    let f = Fixture::new();
    let tools = f.directory("home/.deno/bin");
    let prefix = f.directory("node/bin");
    let linked = f.link("linked", "node").join("bin");
    let hidden = f.directory("home/bin");
    let located = Located { directories: vec![tools.clone()], ..Located::default() };
    let host = [hidden, linked.clone(), prefix.clone(), "/usr/games".into(), "relative".into()];
    let visible = |path: &Path| path.starts_with(f.path("node")) || path.starts_with("/usr");
    let path = inner_path(&located, &host, &visible);
    let first: Vec<PathBuf> = std::env::split_paths(&path).take(4).collect();
    assert_eq!(first, [tools, linked, prefix, "/usr/local/sbin".into()]);
}

#[test]
fn start_directory_is_one_that_is_there() {
    let f = Fixture::new();
    let current = f.directory("work/deep");
    let granted = f.directory("granted");
    let visible = |path: &Path| path.starts_with(&granted);
    let start = |asked: Option<&str>, current: &Path| {
        start_directory(asked.map(PathBuf::from), current, &visible, &[])
            .map_err(|error| error.to_string())
    };
    assert_eq!(start(None, &current), Ok(HOME.into()));
    assert_eq!(start(None, &granted), Ok(granted.clone()));
    assert_eq!(start(None, &granted.join("deleted")), Ok(HOME.into()));
    assert_eq!(start(Some("../../granted"), &current), Ok(granted.clone()));
    for own in ["/", "/tmp", "/usr/share", HOME, "/home/mcp/kept"] {
        assert_eq!(start(Some(own), &current), Ok(own.into()));
    }
    for hidden in [".", "../..", "/home"] {
        let error = start(Some(hidden), &current).unwrap_err();
        let said = "is not visible inside (add --read or --write for it)";
        assert_eq!(error, format!("--cwd {hidden}: {said}"));
    }
    let error = start(Some("nowhere"), &current).unwrap_err();
    assert_eq!(error, "--cwd nowhere: does not exist");
}

#[test]
fn secrets_lose_one_line_end() {
    for (bytes, value) in
        [("x", "x"), ("x\n", "x"), ("x\r\n", "x"), ("x\n\n", "x\n"), ("\n", ""), ("", "")]
    {
        assert_eq!(without_newline(bytes.as_bytes()), value, "{bytes:?}");
    }
}
