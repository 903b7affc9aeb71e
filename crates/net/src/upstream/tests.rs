use proptest::prelude::*;

use super::*;

fn read(variables: &[(&str, &str)]) -> Result<Upstream, BadProxy> {
    Upstream::read(|name| {
        variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
    })
}

fn route(variables: &[(&str, &str)], to: &str) -> Option<String> {
    match read(variables).unwrap().route(&Endpoint::parse(to).unwrap()) {
        Route::Direct => None,
        Route::Proxy(proxy) => Some(proxy.at().to_string()),
    }
}

#[test]
fn each_variable_for_its_ports() {
    let all = [
        ("https_proxy", "http://s.example:1"),
        ("http_proxy", "http://p.example:2"),
        ("ALL_PROXY", "socks5h://a.example:3"),
        ("HTTPS_PROXY", "http://not-this.example"),
    ];
    assert_eq!(route(&all, "x.example:443").as_deref(), Some("s.example:1"));
    assert_eq!(route(&all, "x.example:80").as_deref(), Some("p.example:2"));
    assert_eq!(route(&all, "x.example:22").as_deref(), Some("a.example:3"));
    let upper = [("HTTPS_PROXY", "s.example:1"), ("HTTP_PROXY", "http://p.example")];
    assert_eq!(route(&upper, "x.example:80").as_deref(), Some("p.example:80"));
    let https = [upper[0], upper[1], ("REQUEST_METHOD", "GET")];
    assert_eq!(route(&https, "x.example:22").as_deref(), Some("s.example:1"));
    assert_eq!(
        route(&https, "x.example:80"),
        None,
        "HTTP_PROXY is not believed under a web server"
    );
    assert_eq!(route(&https, "127.0.0.1:443"), None);
    assert_eq!(route(&https, "x.localhost:443"), None);
    assert_eq!(route(&[("https_proxy", " ")], "x.example:443"), None);
    assert!(read(&[]).unwrap().is_direct() && !read(&https).unwrap().is_direct());
}

#[test]
fn no_proxy_by_label() {
    let https = ("https_proxy", "http://s.example:1");
    for (no_proxy, direct, through) in [
        (
            "a.example",
            &["a.example:443", "x.a.example:443"][..],
            &["xa.example:443", "a.example.org:443"][..],
        ),
        (".a.example", &["a.example:443", "x.a.example:443"], &["xa.example:443"]),
        ("*.a.example", &["x.a.example:443"], &["xa.example:443"]),
        ("b.example, a.example:8443", &["a.example:8443", "b.example:1"], &["a.example:443"]),
        (
            "10.0.0.0/8 192.0.2.1",
            &["10.1.2.3:443", "192.0.2.1:443"],
            &["11.0.0.1:443", "192.0.2.2:443"],
        ),
        ("2001:db8::/32,[::2]", &["[2001:db8::1]:443", "[::2]:443"], &["[2001:db9::1]:443"]),
        ("192.0.2.1:80", &["192.0.2.1:80"], &["192.0.2.1:443"]),
        ("*", &["a.example:443", "1.1.1.1:443"], &[]),
        ("", &[], &["a.example:443"]),
        ("10.0.0.0/99, a..b, evil\u{0}", &[], &["10.0.0.1:443"]),
    ] {
        let variables = [https, ("NO_PROXY", no_proxy)];
        for to in direct {
            assert_eq!(route(&variables, to), None, "{no_proxy}: {to}");
        }
        for to in through {
            assert!(route(&variables, to).is_some(), "{no_proxy}: {to}");
        }
    }
}

#[test]
fn proxies() {
    let one = |value| read(&[("ALL_PROXY", value)]).map(|upstream| upstream.all);
    let at = |text| Endpoint::parse(text).unwrap();
    assert_eq!(
        one("http://me:p%40ss@p.example:8080/").unwrap(),
        Some(Proxy::Http {
            at: at("p.example:8080"),
            credentials: Some(Credentials::basic(b"me", b"p@ss")),
        })
    );
    assert_eq!(
        one("socks5://u:p@[::1]").unwrap(),
        Some(Proxy::Socks5 {
            at: at("[::1]:1080"),
            auth: Auth::new(b"u", b"p"),
            resolved_by: ResolvedBy::Broker
        })
    );
    assert_eq!(
        one("SOCKS5H://p.example:9").unwrap(),
        Some(Proxy::Socks5 { at: at("p.example:9"), auth: None, resolved_by: ResolvedBy::Proxy })
    );
    for (value, said) in [
        ("https://p.example", "over TLS are not supported"),
        ("ftp://p.example", "must begin with"),
        ("socks4://p.example", "SOCKS 4"),
        ("http://", "cannot be read"),
        ("http://a b", "cannot be read"),
        ("http://me:%0d%0ax@p.example", "cannot be sent"),
        ("http://me:%zz@p.example", "cannot be read"),
        ("socks5://me@p.example", "1 to 255"),
    ] {
        let error = one(value).unwrap_err().to_string();
        assert!(error.contains(said) && error.starts_with("ALL_PROXY: "), "{value}: {error}");
    }
}

#[test]
fn secrets_are_not_shown() {
    let variables = [
        ("ALL_PROXY", "socks5://me:hunter2@p.example"),
        ("https_proxy", "http://me:hunter2@p.example"),
    ];
    let shown = format!("{:?}", read(&variables).unwrap());
    assert!(!shown.contains("hunter2") && !shown.contains("aHVudGVy"), "{shown}");
    let bad = format!("{:?}", read(&[("ALL_PROXY", "x://me:hunter2@p.example")]).unwrap_err());
    assert!(!bad.contains("hunter2"), "{bad}");
}

proptest! {
    #[test]
    fn no_text_panics(proxy in ".*|[a-z5]{0,6}://[a-z0-9:@%.\\[\\]/]{0,24}", no_proxy in ".*|[a-z0-9.,:/\\[\\]* ]{0,30}") {
        if let Ok(upstream) = read(&[("ALL_PROXY", &proxy), ("NO_PROXY", &no_proxy)]) {
            let _ = upstream.route(&Endpoint::parse("a.example:443").unwrap());
        }
    }
}
