//! Values that are paths, as git expands them (git-config(1), "pathname"): `~/`, `~user/`, `%(prefix)/` and
//! `:(optional)`.

use std::path::{Path, PathBuf};

/// Where a value may lead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pathname {
    /// Absolute, or below the directory that git runs in.
    At(PathBuf),
    /// Below a directory that we do not know: the home of a user whom only a directory service knows, or where git
    /// is installed.
    Below(PathBuf),
    /// Below a directory that a command line takes from elsewhere: most likely the top of a work tree.
    Within(PathBuf),
}

/// The home directories that `~` and `~user` stand for.
#[derive(Debug, Clone, Default)]
pub struct Homes {
    own: Vec<PathBuf>,
    /// `/etc/passwd`: the launcher is static and asks no other source.
    users: Vec<(Vec<u8>, PathBuf)>,
}

impl Homes {
    /// Those of the caller, and of this machine's users.
    pub fn of_the_caller() -> Homes {
        let mut homes = Homes { own: Vec::new(), users: users() };
        homes.own.extend(std::env::home_dir().filter(|home| home.is_absolute()));
        homes.own.extend(own_home(&homes.users));
        homes.own.dedup();
        homes
    }

    #[cfg(test)]
    pub fn at(own: &Path) -> Homes {
        Homes { own: vec![own.to_owned()], users: Vec::new() }
    }

    pub fn own(&self) -> &[PathBuf] {
        &self.own
    }
}

#[cfg(unix)]
fn users() -> Vec<(Vec<u8>, PathBuf)> {
    let text = std::fs::read("/etc/passwd").unwrap_or_default();
    let user = |line: &[u8]| {
        let fields: Vec<&[u8]> = line.split(|c| *c == b':').collect();
        Some((fields.first()?.to_vec(), path(fields.get(5)?)))
    };
    text.split(|c| *c == b'\n').filter_map(user).collect()
}

#[cfg(windows)]
fn users() -> Vec<(Vec<u8>, PathBuf)> {
    Vec::new()
}

/// HOME can be another for the launcher alone.
#[cfg(unix)]
fn own_home(users: &[(Vec<u8>, PathBuf)]) -> Option<PathBuf> {
    let name = std::env::var_os("USER")?;
    let name = name.as_encoded_bytes();
    users.iter().find(|(user, _)| user == name).map(|(_, home)| home.clone())
}

/// Git for Windows takes HOME before the profile.
#[cfg(windows)]
fn own_home(_: &[(Vec<u8>, PathBuf)]) -> Option<PathBuf> {
    std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute())
}

/// Bytes of git's as a path.
#[cfg(unix)]
pub fn path(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    std::ffi::OsStr::from_bytes(bytes).into()
}

#[cfg(windows)]
pub fn path(bytes: &[u8]) -> PathBuf {
    String::from_utf8_lossy(bytes).into_owned().into()
}

/// What a pathname can mean to one version of git or another: newer ones take `:(optional)` away, older ones (before 2.45)
/// read every blank inside of a value as a space.
pub fn expand(value: &[u8], homes: &Homes) -> Vec<Pathname> {
    let mut meanings = interpolate(value, homes);
    if let Some(value) = value.strip_prefix(b":(optional)") {
        meanings.extend(interpolate(value, homes));
    }
    if value.contains(&b'\t') || value.contains(&b'\r') {
        let is_blank = |c: u8| matches!(c, b'\t' | b'\r');
        let spaced: Vec<u8> = value.iter().map(|c| if is_blank(*c) { b' ' } else { *c }).collect();
        meanings.extend(interpolate(&spaced, homes));
    }
    meanings
}

/// As [`expand`], for values that can not be optional.
pub fn interpolate(value: &[u8], homes: &Homes) -> Vec<Pathname> {
    if let Some(rest) = value.strip_prefix(b"%(prefix)/") {
        return vec![Pathname::Below(path(rest))];
    }
    let Some(rest) = value.strip_prefix(b"~") else {
        return vec![Pathname::At(path(value))];
    };
    let (user, rest) = match rest.iter().position(|c| *c == b'/') {
        Some(slash) => rest.split_at(slash),
        None => (rest, &b""[..]),
    };
    let rest = rest.strip_prefix(b"/").unwrap_or(rest);
    let known: Vec<&PathBuf> = match user {
        b"" => homes.own.iter().collect(),
        user => homes.users.iter().filter(|(name, _)| name == user).map(|(_, home)| home).collect(),
    };
    match known.is_empty() {
        true => vec![Pathname::Below(path(rest))],
        false => known.into_iter().map(|home| Pathname::At(home.join(path(rest)))).collect(),
    }
}

/// Every place that a pathname can be: relative ones below each of the directories that git may run in, those of
/// unknown start below each of the places that matter, with whatever of their parts lies above these.
pub fn places(name: &Pathname, bases: &[&Path], roots: &[&Path]) -> Vec<PathBuf> {
    match name {
        Pathname::At(path) if path.is_absolute() => vec![path.clone()],
        Pathname::At(path) => bases.iter().map(|base| base.join(path)).collect(),
        Pathname::Within(path) => bases.iter().chain(roots).map(|base| base.join(path)).collect(),
        Pathname::Below(path) => {
            let parts: Vec<_> = path.iter().filter(|part| *part != "/").collect();
            let tails = (0..parts.len()).map(|from| parts.iter().skip(from).collect::<PathBuf>());
            tails.flat_map(|tail| roots.iter().map(move |root| root.join(&tail))).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn homes_are_expanded_as_git_does() {
        let users = vec![(b"ada".to_vec(), PathBuf::from("/srv/ada"))];
        let homes = Homes { own: vec!["/home/me".into()], users };
        let at = |path: &str| vec![Pathname::At(path.into())];
        let below = |path: &str| vec![Pathname::Below(path.into())];
        assert_eq!(expand(b"~/p/h", &homes), at("/home/me/p/h"));
        assert_eq!(expand(b"~ada/h", &homes), at("/srv/ada/h"));
        assert_eq!(expand(b"~bob/h", &homes), below("h"));
        assert_eq!(expand(b"%(prefix)/h", &homes), below("h"));
        assert_eq!(expand(b"./~/h", &homes), at("./~/h"));
        let both = [at(":(optional)~/h"), at("/home/me/h")].concat();
        assert_eq!(expand(b":(optional)~/h", &homes), both);
        assert_eq!(expand(b"~/h", &Homes::default()), below("h"));
    }

    #[test]
    fn an_unknown_start_counts_at_every_depth() {
        let roots = [Path::new("/w/p")];
        let found = places(&Pathname::Below("p/a/hooks".into()), &[], &roots);
        let expected = ["/w/p/p/a/hooks", "/w/p/a/hooks", "/w/p/hooks"].map(PathBuf::from);
        assert_eq!(found, expected);
    }
}
