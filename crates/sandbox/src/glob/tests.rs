use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use proptest::prelude::*;

use super::*;

/// Whether an absolute path matches, names compared one by one.
fn matches(pattern: &str, path: impl AsRef<[u8]>) -> bool {
    let globs = parse(Path::new(pattern)).unwrap();
    let path = path.as_ref();
    globs.iter().any(|glob| {
        let head = glob.head.as_os_str().as_bytes();
        let below = match head {
            b"/" => path.strip_prefix(b"/"),
            head => path.strip_prefix(head).and_then(|rest| rest.strip_prefix(b"/")),
        };
        let names: Vec<&[u8]> = match below {
            Some(rest) => rest.split(|byte| *byte == b'/').collect(),
            None => return glob.tail.is_empty() && head == path,
        };
        tail_matches(&glob.tail, &names)
    })
}

fn tail_matches(tail: &[Part], names: &[&[u8]]) -> bool {
    match (tail, names) {
        ([], []) => true,
        ([Part::AnyDepth, rest @ ..], _) => {
            (0..=names.len()).any(|skipped| tail_matches(rest, &names[skipped..]))
        }
        ([part, rest @ ..], [name, names @ ..]) => part.matches(name) && tail_matches(rest, names),
        _ => false,
    }
}

#[test]
fn what_matches() {
    for (pattern, path) in [
        ("**/.env", "/.env"),
        ("**/.env", "/a/b/.env"),
        ("**/.git/hooks", "/home/me/.git/hooks"),
        ("**/.git/**", "/a/.git/x"),
        ("**/.git/**", "/a/.git/x/y"),
        ("**/**/x", "/x"),
        ("/srv/*.pem", "/srv/.pem"),
        ("/srv/*.pem", "/srv/key.pem"),
        ("/srv/?.key", "/srv/é.key"),
        ("/srv/[a-c]", "/srv/b"),
        ("/srv/[c-a]", "/srv/b"),
        ("/srv/[!a-c]", "/srv/x"),
        ("/srv/[^a-c]", "/srv/x"),
        ("/srv/[]x]", "/srv/]"),
        ("/srv/[a-]", "/srv/-"),
        ("/srv/[à-ü]", "/srv/é"),
        ("/srv/[[]app]/*.pem", "/srv/[app]/x.pem"),
        ("/srv/[[]app]", "/srv/[app]"),
        ("/srv/[app", "/srv/[app"),
        ("/srv/a**b", "/srv/axxb"),
        ("/srv/*.{pem,key}", "/srv/x.key"),
        ("/srv/{a,b{c,d}}/x", "/srv/bd/x"),
        ("/srv/{a/b,c}", "/srv/a/b"),
        ("/srv/{a}", "/srv/a"),
        ("/srv/{a}", "/srv/{a}"),
        ("/srv/{a", "/srv/{a"),
        ("/srv/[{]a,b}", "/srv/{a,b}"),
        ("/srv/[[]{a,b}]", "/srv/[b]"),
        ("/srv/**/x", "/srv/x"),
        ("/srv/a*b*c*d", "/srv/a-b-c-b-c-d"),
        ("/srv/../etc/*", "/srv/../etc/x"),
    ] {
        assert!(matches(pattern, path), "{pattern} {path}");
    }
}

#[test]
fn what_does_not() {
    for (pattern, path) in [
        ("**/.env", "/a/.envrc"),
        ("**/.env", "/a/x.env"),
        ("**/.env", "/a/.ENV"),
        ("**/.env", "/a/.env/x"),
        ("**/.git/**", "/a/.git"),
        ("/srv/*.pem", "/srv/a/b.pem"),
        ("/srv/?", "/srv/"),
        ("/srv/?", "/srv/ab"),
        ("/srv/[!a-c]", "/srv/a"),
        ("/srv/[a-c]", "/srv/[a-c]"),
        ("/srv/[a/b]", "/srv/a"),
        ("/srv/*", "/srv"),
        ("/srv/a*b*c*d", "/srv/a-b-c-b-c"),
    ] {
        assert!(!matches(pattern, path), "{pattern} {path}");
    }
}

#[test]
fn names_need_not_be_utf8() {
    assert!(matches("/srv/?.key", b"/srv/\xff.key"));
    assert!(matches("/srv/*.key", b"/srv/\xff\xfe.key"));
    assert!(matches("/srv/[!a]", b"/srv/\xc3"));
    assert!(!matches("/srv/?", b"/srv/\xff\xfe"));
    let globs = parse(Path::new(OsStr::from_bytes(b"/srv/\xff[x]/*"))).unwrap();
    assert_eq!(globs[0].head, Path::new(OsStr::from_bytes(b"/srv/\xffx")));
}

#[test]
fn what_stands_for_nothing_is_an_error() {
    assert!(parse(Path::new("/srv/*/../x")).is_err());
    assert!(parse(Path::new("**/../x")).is_err());
    assert!(parse(Path::new(&"{a,b}".repeat(9))).is_err());
    assert!(parse(Path::new(&"{a}".repeat(5000))).is_err());
    assert!(parse(Path::new(&"{".repeat(4000))).is_ok());
}

/// The same question, asked in the slowest and plainest way.
fn naive(tokens: &[Token], units: &[u32]) -> bool {
    match (tokens, units) {
        ([], []) => true,
        ([Token::AnyRun, rest @ ..], _) => {
            (0..=units.len()).any(|taken| naive(rest, &units[taken..]))
        }
        ([token, rest @ ..], [unit, units @ ..]) => token.admits(*unit) && naive(rest, units),
        _ => false,
    }
}

fn units(mut name: &[u8]) -> Vec<u32> {
    let mut units = Vec::new();
    while let Some((unit, length)) = first(name) {
        units.push(unit);
        name = &name[length..];
    }
    units
}

fn few(alphabet: &'static [&'static [u8]], most: usize) -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(proptest::sample::select(alphabet), 0..most)
        .prop_map(|pieces| pieces.concat())
}

const PATTERN: &[&[u8]] =
    &[b"a", b"b", b".", b"*", b"?", b"[", b"]", b"!", b"-", "é".as_bytes(), b"\xff", b"[ab]"];
const NAME: &[&[u8]] =
    &[b"a", b"b", b".", b"*", b"[", b"]", b"-", "é".as_bytes(), b"\xff", b"\xc3"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn matching_is_what_the_naive_way_says(pattern in few(PATTERN, 8), name in few(NAME, 8)) {
        let expected = pattern != b"**" && naive(&tokens(&pattern), &units(&name));
        prop_assert_eq!(part(&pattern).matches(&name), expected || pattern == b"**");
    }

    #[test]
    fn every_name_matches_itself_escaped(name in few(NAME, 8)) {
        let escaped: Vec<u8> = name
            .iter()
            .flat_map(|byte| match byte {
                b'*' | b'?' | b'[' | b'{' | b'}' => vec![b'[', *byte, b']'],
                byte => vec![*byte],
            })
            .collect();
        prop_assert_eq!(part(&escaped), Part::Name(name));
    }

    #[test]
    fn nothing_makes_it_panic(pattern in proptest::collection::vec(any::<u8>(), 0..40)) {
        let _ = parse(Path::new(OsStr::from_bytes(&pattern)));
    }
}
