use proptest::prelude::*;

use super::*;

const HEX: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

fn parse(text: &str) -> Reference {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn every_form_of_the_manual() {
    let package = |name: &str, version: Option<&str>| Package {
        name: name.into(),
        version: version.map(str::to_owned),
        ..Package::default()
    };
    let full = |version: Option<&str>, extras: &[&str], with: &[&str]| Package {
        name: "name".into(),
        version: version.map(str::to_owned),
        extras: extras.iter().map(|extra| (*extra).to_owned()).collect(),
        with: with.iter().map(|with| (*with).to_owned()).collect(),
    };
    let named = |name: &str, which| Named { name: name.into(), which };
    let digest = Digest::from_hex(HEX).unwrap();
    for (text, expected) in [
        ("./dir", Reference::Path("./dir".into())),
        ("../a b.mcpb", Reference::Path("../a b.mcpb".into())),
        ("/srv/x", Reference::Path("/srv/x".into())),
        (".", Reference::Path(".".into())),
        ("npm:name", Reference::Npm(package("name", None))),
        ("npm:@scope/name@1.2.3", Reference::Npm(package("@scope/name", Some("1.2.3")))),
        ("npm:name@next", Reference::Npm(package("name", Some("next")))),
        ("pypi:Mcp_Server.Time", Reference::Pypi(package("mcp-server-time", None))),
        ("pypi:name==1.2.3", Reference::Pypi(package("name", Some("1.2.3")))),
        ("npm:name@^2.0.0", Reference::Npm(package("name", Some("^2.0.0")))),
        ("npm:name@20", Reference::Npm(package("name", Some("20")))),
        ("pypi:name[all]", Reference::Pypi(full(None, &["all"], &[]))),
        ("pypi:name[b,A]@1.0", Reference::Pypi(full(Some("1.0"), &["a", "b"], &[]))),
        ("pypi:name,mcp<2", Reference::Pypi(full(None, &[], &["mcp<2"]))),
        (
            "pypi:name[x]@1.0,Other_One[y,z]>=1,<2,mcp",
            Reference::Pypi(full(Some("1.0"), &["x"], &["mcp", "other-one[y,z]>=1,<2"])),
        ),
        ("pypi:name@1.2.3", Reference::Pypi(package("name", Some("1.2.3")))),
        ("acme/test@1.0.0", Reference::Named(named("acme/test", Which::Version("1.0.0".into())))),
        ("acme/test@latest", Reference::Named(named("acme/test", Which::Latest))),
        ("acme/test", Reference::Named(named("acme/test", Which::Latest))),
        (
            &format!("acme/test@sha256:{HEX}"),
            Reference::Named(named("acme/test", Which::Digest(digest))),
        ),
        (
            "io.github.User/server",
            Reference::Official(named("io.github.User/server", Which::Latest)),
        ),
        (
            &format!("oci://localhost:5000/acme/test:1.0.0@sha256:{HEX}"),
            Reference::Oci(Repository {
                host: "localhost:5000".into(),
                path: "acme/test".into(),
                tag: Some("1.0.0".into()),
                digest: Some(digest),
            }),
        ),
    ] {
        assert_eq!(parse(text), expected, "{text}");
        assert_eq!(parse(&expected.to_string()), expected, "{text}");
    }
}

#[test]
fn what_is_wrong_is_told_with_what_was_expected() {
    for (text, said) in [
        ("", "expected ./directory"),
        ("echo", "npm:NAME@VERSION"),
        ("https://x/y", "https:// is not known"),
        ("localhost:5000/acme/test", "hosts are written with oci://"),
        ("ghcr.io:443/acme/test", "hosts are written with oci://"),
        ("acme/test:1.0.0", "the version goes after @: acme/test@1.0.0"),
        ("acme/Test", "lower-case letters"),
        ("acme/../x", "lower-case letters"),
        ("acme/test@", "expected a version after @"),
        ("acme/test@1.0+x", "no + in versions"),
        ("acme/test@sha256:12", "64 digits"),
        ("npm:", "expected a package name"),
        ("npm:--registry=x", "expected a package name"),
        ("npm:@scope", "expected a name after the scope"),
        ("npm:a@>1.0.0", "a version, a range or a tag"),
        ("npm:a/../../x", "expected a package name"),
        ("pypi:-r", "expected a project name"),
        ("pypi:a>=1", "expected a project name"),
        ("pypi:a[b", "expected a project name"),
        ("pypi:a[-b]", "expected a project name"),
        ("pypi:a,-r", "expected a requirement"),
        ("pypi:a,./b", "expected a requirement"),
        ("pypi:a==-1", "expected an exact version"),
        ("oci://host", "a name after the host"),
        ("oci://user:pw@host/x", "is not a digest"),
        ("oci://ho st/x", "cannot be part"),
        ("oci://host:0/x", "expected a host"),
        ("oci://host/x:!", "expected a tag"),
        ("acme/te\nst", "cannot be part"),
    ] {
        let error = text.parse::<Reference>().unwrap_err();
        assert!(error.to_string().contains(said), "{text:?}: {error}");
        assert!(!error.message().contains('\n'), "{error}");
    }
}

proptest! {
    #[test]
    fn any_text_parses_or_is_refused_and_shows_as_itself(text in "\\PC{0,40}|(npm:|pypi:|oci://|\\./|acme/)?[-a-zA-Z0-9@:/._+=]{0,30}") {
        if let Ok(reference) = text.parse::<Reference>() {
            prop_assert_eq!(reference.to_string().parse::<Reference>().unwrap(), reference);
        }
    }

    #[test]
    fn nothing_can_be_taken_for_an_option(text in "(npm|pypi):[-@a-z/.=]{0,12}") {
        if let Ok(Reference::Npm(package) | Reference::Pypi(package)) = text.parse::<Reference>() {
            prop_assert!(!package.name.starts_with('-'));
            prop_assert!(!package.name.contains(".."), "{}", package.name);
            prop_assert!(!package.version.unwrap_or_default().starts_with('-'));
        }
    }
}
