use proptest::prelude::*;

use super::*;

fn written(text: &str) -> Result<WindowsPath, &'static str> {
    WindowsPath::parse(text, Spelling::Written)
}

#[test]
fn one_place_has_one_spelling() {
    for text in
        [r"C:\Users\me", "c:/Users/me", r"\\?\C:\Users\me", "//?/c:/Users/me/", r"C:\.\Users\\me\."]
    {
        assert_eq!(written(text).unwrap().to_string(), r"C:\Users\me", "{text}");
    }
    assert_eq!(written(r"C:\uSERS\ME").unwrap(), written(r"c:\Users\me").unwrap());
    assert_ne!(written(r"D:\Users\me").unwrap(), written(r"c:\Users\me").unwrap());
}

#[test]
fn other_places_are_refused() {
    for text in [
        "",
        "x",
        r"\x",
        "C:",
        "C:x",
        r"\\server\share\x",
        "//server/share",
        r"\\?\UNC\server\share",
        r"\\?\unc\server\share",
        r"\\.\PhysicalDrive0",
        r"\\?\GLOBALROOT\Device\X",
        r"\\?\Volume{1}\x",
        r"\??\C:\x",
        r"C:\a\..\b",
        r"C:\a.txt:stream",
        r"C:\a::$DATA",
        r"C:\nul",
        r"C:\x\COM1.log",
        r"C:\x.",
        r"C:\x \y",
        r"C:\PROGRA~1",
        "C:\\a\0b",
        "C:\\a\nb",
        r"C:\a*",
    ] {
        assert!(written(text).is_err(), "{text:?}");
    }
    assert!(WindowsPath::parse(r"C:\PROGRA~1", Spelling::Resolved).is_ok());
}

#[test]
fn below_means_by_whole_names() {
    let root = written(r"C:\data").unwrap();
    for (text, within) in [
        (r"C:\data", true),
        (r"C:\DATA\x", true),
        (r"C:\data2", false),
        (r"C:\dat", false),
        (r"D:\data\x", false),
    ] {
        assert_eq!(written(text).unwrap().is_within(&root), within, "{text}");
    }
    let above: Vec<String> =
        written(r"C:\a\b\c").unwrap().ancestors().map(|p| p.to_string()).collect();
    assert_eq!(above, [r"C:\a\b", r"C:\a", r"C:\"]);
}

#[test]
fn a_joined_name_is_one_name() {
    let root = written(r"C:\a").unwrap();
    assert_eq!(root.join("b").unwrap().to_string(), r"C:\a\b");
    for name in ["", ".", "..", r"b\c", "b/c", "nul", "b:c", "b."] {
        assert!(root.join(name).is_err(), "{name:?}");
    }
}

proptest! {
    /// Whatever is accepted is spelt so that it is accepted again, as itself, by every prefix.
    #[test]
    fn what_is_accepted_is_a_fixed_point(text in r"(\\\\\?\\)?[a-zA-Z]:[\\/]([a-zA-Z0-9~:. \\/*ß]{0,30})") {
        if let Ok(path) = written(&text) {
            let spelt = path.to_string();
            prop_assert_eq!(&written(&spelt).unwrap(), &path);
            prop_assert_eq!(&written(&format!(r"\\?\{spelt}")).unwrap(), &path);
            prop_assert_eq!(&written(&spelt.replace('\\', "/")).unwrap(), &path);
            prop_assert_eq!(&written(&spelt.to_ascii_uppercase()).unwrap(), &path);
            let inner = spelt.get(2..).unwrap();
            prop_assert!(!inner.contains([':', '*', '/']), "{}", spelt);
            prop_assert!(spelt.split('\\').all(|name| name != ".." && !name.ends_with(' ')));
        }
    }

    /// No text makes it panic, and nothing but a drive's path is taken.
    #[test]
    fn anything_may_be_asked(text in any::<String>()) {
        if let Ok(path) = written(&text) {
            prop_assert!(path.to_string().as_bytes()[1] == b':');
        }
    }

    /// A name that leaves the root is never within it.
    #[test]
    fn joins_stay_within(names in prop::collection::vec("[a-zA-Z0-9.~ :]{1,12}", 0..6)) {
        let root = written(r"C:\root").unwrap();
        let mut path = root.clone();
        for name in &names {
            if let Ok(joined) = path.join(name) {
                path = joined;
            }
        }
        prop_assert!(path.is_within(&root));
        prop_assert!(path.ancestors().all(|above| path.is_within(&above)));
    }
}

#[test]
fn a_prefix_goes_where_the_rest_says_the_same() {
    for (path, expected) in [
        (r"\\?\C:\a b", r"C:\a b"),
        (r"\\?\UNC\server\share", r"\\?\UNC\server\share"),
        (r"\\?\Volume{1}\x", r"\\?\Volume{1}\x"),
        (r"\\?\C:", r"\\?\C:"),
        ("/home/me", "/home/me"),
        ("", ""),
    ] {
        assert_eq!(super::plain(path.into()), std::path::Path::new(expected));
    }
}
