use super::*;
use crate::core::request::{Denied, DeniedKind};
use crate::linux::plan::sample;

/// A merged /usr and a file in /etc, as an ordinary user sees them.
fn user() -> LinuxFacts {
    let mut facts = sample::facts(1000);
    facts.entries = vec![
        sample::entry("/usr", EntryKind::Directory),
        sample::entry("/bin", EntryKind::Symlink("usr/bin".into())),
        sample::entry("/etc/localtime", EntryKind::File),
        sample::entry("/etc/ssl", EntryKind::Directory),
    ];
    facts
}

fn root() -> LinuxFacts {
    LinuxFacts { caller: sample::facts(0).caller, ..user() }
}

fn directory(path: &str) -> Place {
    Place { path: path.into(), kind: PlaceKind::Directory }
}

fn file(path: &str) -> Place {
    Place { path: path.into(), kind: PlaceKind::File }
}

fn link(at: &str, to: &str) -> Link {
    Link { at: at.into(), to: to.into() }
}

/// The binds, as `path` and `path` with a `+` where they are writable.
fn bound(request: &Request, facts: &LinuxFacts) -> Vec<String> {
    let marked = |at: &Path, access: Access| match access {
        Access::ReadOnly => at.display().to_string(),
        Access::ReadWrite => format!("{}+", at.display()),
    };
    let bind = |step: &Placed| match step {
        Placed::Bind { at, access, .. } => Some(marked(at, *access)),
        _ => None,
    };
    steps(request, facts, 1000, 1000).iter().filter_map(bind).collect()
}

fn linked(request: &Request) -> Vec<String> {
    let made = |step: &Placed| match step {
        Placed::Link { at, to } => Some(format!("{} {}", at.display(), to.display())),
        _ => None,
    };
    // These tests run on Windows as well, where joining puts in the other separator.
    let steps = steps(request, &user(), 1000, 1000);
    steps.iter().filter_map(made).map(|text| text.replace('\\', "/")).collect()
}

fn scratched(request: &Request) -> Vec<PathBuf> {
    let places = |step| match step {
        Placed::Scratch { places } => places.into_iter().map(|(at, _)| at).collect(),
        _ => Vec::new(),
    };
    steps(request, &user(), 1000, 1000).into_iter().flat_map(places).collect()
}

#[test]
fn what_the_system_shows_is_not_bound_again() {
    let request = Request {
        shown: vec![directory("/usr"), file("/usr/bin/node")],
        read: vec![directory("/usr/share"), file("/etc/ssl/cert.pem"), file("/etc/localtime")],
        ..sample::request()
    };
    assert_eq!(bound(&request, &user()), [""; 0]);
    // For root a grant is more: files that only root may read.
    assert_eq!(bound(&request, &root()), ["/etc/localtime", "/etc/ssl/cert.pem", "/usr/share"]);
}

#[test]
fn writing_below_the_system_is_bound() {
    let request = Request {
        read: vec![directory("/usr/local/share")],
        write: vec![directory("/usr/local"), file("/etc/localtime")],
        ..sample::request()
    };
    for facts in [user(), root()] {
        assert_eq!(bound(&request, &facts), ["/etc/localtime+", "/usr/local+"]);
    }
}

#[test]
fn a_file_of_etc_is_bound_alone() {
    let request = Request { read: vec![file("/etc/hosts")], ..sample::request() };
    assert_eq!(bound(&request, &user()), ["/etc/hosts"]);
    // Over the one of our own, which therefore comes first.
    let steps = steps(&request, &user(), 1000, 1000);
    let at = |wanted: &dyn Fn(&Placed) -> bool| steps.iter().position(wanted).unwrap();
    let ours = at(&|step| matches!(step, Placed::Text { at, .. } if at.ends_with("hosts")));
    let theirs = at(&|step| matches!(step, Placed::Bind { .. }));
    assert!(ours < theirs);
}

#[test]
fn nested_grants_keep_what_each_gives() {
    let request = Request {
        shown: vec![directory("/srv/a/b/tool"), directory("/srv/ab")],
        read: vec![directory("/srv/a"), directory("/srv/a/b/c/d"), directory("/srv/a/x")],
        write: vec![directory("/srv/a/b"), directory("/srv/a/b/c")],
        ..sample::request()
    };
    assert_eq!(bound(&request, &user()), ["/srv/a", "/srv/a/b+", "/srv/ab"]);
    let twice = Request { read: vec![directory("/x")], write: vec![directory("/x")], ..request };
    assert_eq!(bound(&twice, &user()), ["/srv/a/b/tool", "/srv/ab", "/x+"]);
}

#[test]
fn grants_below_temporary_places_are_mounted_over_them() {
    let grants = vec![directory("/home/mcp/a"), directory("/tmp/a"), directory("/var/tmp/a")];
    let request = Request { write: grants, ..sample::request() };
    assert_eq!(bound(&request, &user()), ["/home/mcp/a+", "/tmp/a+", "/var/tmp/a+"]);
    // /var/tmp is a link to /tmp, but nothing can be mounted through a link.
    assert_eq!(
        scratched(&request),
        ["/tmp", "/dev/shm", "/home/mcp", "/var/tmp"].map(PathBuf::from)
    );
    assert_eq!(linked(&request), ["/bin usr/bin"]);
    let steps = steps(&request, &user(), 1000, 1000);
    let scratch = steps.iter().position(|step| matches!(step, Placed::Scratch { .. }));
    assert!(scratch < steps.iter().position(|step| matches!(step, Placed::Bind { .. })));
}

#[test]
fn a_grant_of_a_temporary_place_is_the_host_s() {
    let request = Request {
        read: vec![directory("/tmp"), directory("/home/mcp"), directory("/var/tmp")],
        home: Home::Kept("/data/kept".into()),
        ..sample::request()
    };
    assert_eq!(bound(&request, &user()), ["/home/mcp", "/tmp", "/var/tmp"]);
    assert_eq!(linked(&request), ["/bin usr/bin"]);
}

#[test]
fn a_kept_home_comes_before_what_is_granted_in_it() {
    let request = Request {
        write: vec![directory("/home/mcp/project"), directory("/a")],
        home: Home::Kept("/data/kept".into()),
        ..sample::request()
    };
    assert_eq!(bound(&request, &user()), ["/home/mcp+", "/a+", "/home/mcp/project+"]);
    assert_eq!(scratched(&request), ["/tmp", "/dev/shm"].map(PathBuf::from));
    let home = steps(&request, &root(), 1000, 1000)
        .into_iter()
        .find(|step| matches!(step, Placed::Bind { from, .. } if from.ends_with("kept")));
    assert_eq!(
        home,
        Some(Placed::Bind {
            from: "/data/kept".into(),
            at: HOME.into(),
            kind: PlaceKind::Directory,
            access: Access::ReadWrite,
            owner: Owner::CallerMapped,
        })
    );
}

#[test]
fn links_are_made_only_where_they_are_not() {
    let links = vec![
        link("/bin", "usr/bin"),
        link("/usr/bin/python3", "python3.12"),
        link("/etc/ssl/certs", "/usr/share/certs"),
        link("/srv/app/current", "v1"),
        link("/opt/current", "v1"),
        link("/tmp/link", "/srv/app"),
    ];
    let request = Request { links, ..sample::request() };
    let own = ["/bin usr/bin", "/opt/current v1"];
    assert_eq!(
        linked(&request),
        [&own[..], &["/srv/app/current v1", "/tmp/link /srv/app", "/var/tmp /tmp"]].concat()
    );
    let request = Request { read: vec![directory("/srv/app")], ..request };
    assert_eq!(linked(&request), [&own[..], &["/tmp/link /srv/app", "/var/tmp /tmp"]].concat());
}

#[test]
fn a_link_below_var_tmp_has_a_directory_to_be_in() {
    let links = vec![link("/var/tmp/link", "/srv/app")];
    let request = Request { links, ..sample::request() };
    assert!(scratched(&request).contains(&"/var/tmp".into()));
    assert_eq!(linked(&request), ["/bin usr/bin", "/var/tmp/link /srv/app"]);
}

/// Fedora's image-based systems: the home directory's path has a link in it, and ours is there.
#[test]
fn a_link_where_we_have_a_directory_is_made_one_level_below() {
    let request = Request {
        links: vec![link("/home", "var/home"), link("/var/home/me/app", "app-1")],
        read: vec![directory("/var/home/me/app-1"), directory("/var/home/you/x")],
        ..sample::request()
    };
    assert_eq!(
        linked(&request),
        [
            "/bin usr/bin",
            "/home/me /var/home/me",
            "/home/you /var/home/you",
            "/var/home/me/app app-1",
            "/var/tmp /tmp",
        ]
    );
    let elsewhere = Request {
        links: vec![link("/var", "/data/./x/../var"), link("/tmp", "data/tmp")],
        read: vec![directory("/data/var/lib"), directory("/data/tmp/a")],
        ..sample::request()
    };
    assert_eq!(
        linked(&elsewhere),
        ["/bin usr/bin", "/tmp/a /data/tmp/a", "/var/lib /data/var/lib"]
    );
    assert!(scratched(&elsewhere).contains(&"/var/tmp".into()));
}

#[test]
fn visible_is_what_is_bound_or_of_the_system() {
    let request = Request { read: vec![directory("/srv/a")], ..sample::request() };
    for (path, visible) in [
        ("/srv/a", true),
        ("/srv/a/b", true),
        ("/srv/ab", false),
        ("/srv", false),
        ("/usr/share/dict", true),
        ("/bin/sh", true),
        ("/etc/localtime", true),
        ("/etc/shadow", false),
        ("/tmp/x", false),
        ("/home/me", false),
    ] {
        assert_eq!(is_visible(Path::new(path), &request, &user()), visible, "{path}");
    }
}

#[test]
fn a_layer_lies_over_what_is_shown_read_only_and_covers_nothing_else() {
    let at = |layer: &Placed| match layer {
        Placed::Layer { at, access, .. } => Some((at.clone(), *access)),
        _ => None,
    };
    let layer = |writing| Some(WritableLayer::new("/srv/p".into(), "/data/p".into(), writing));
    let with = |change: &dyn Fn(&mut Request)| {
        let mut request = Request {
            read: vec![directory("/srv/p")],
            layer: layer(LayerWriting::Allowed),
            ..sample::request()
        };
        change(&mut request);
        let steps = steps(&request, &user(), 1000, 1000);
        let found = steps.iter().position(|step| at(step).is_some());
        let bind = steps.iter().position(|step| matches!(step, Placed::Bind { .. }));
        assert!(found.is_none() || bind < found);
        found.and_then(|index| at(&steps[index]))
    };
    let (path, writable) = (PathBuf::from("/srv/p"), Access::ReadWrite);
    assert_eq!(with(&|_| {}), Some((path.clone(), writable)));
    let of_another = |r: &mut Request| r.layer = layer(LayerWriting::OfAnotherRun);
    assert_eq!(with(&of_another), Some((path.clone(), Access::ReadOnly)));
    assert_eq!(with(&|r| r.read = vec![directory("/srv")]), Some((path, writable)));
    // What a person granted or denied there counts.
    assert_eq!(with(&|r| r.read.clear()), None);
    assert_eq!(with(&|r| r.write.push(directory("/srv"))), None);
    assert_eq!(with(&|r| r.write.push(directory("/srv/p/out"))), None);
    let denied = |r: &mut Request| {
        let kind = DeniedKind::File;
        r.denied.push(Denied { path: "/srv/p/key".into(), kind, rule: 0 });
    };
    assert_eq!(with(&denied), None);
}
