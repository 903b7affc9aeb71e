//! A public-looking address without the internet: `example.com` is 93.184.215.14, which is the other end of a link between
//! two network namespaces and serves the page.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use tokio::process::Command;

use super::page;
use super::place::Place;
use crate::Result;

const SCRIPT: &str = include_str!("../../../servers/public.sh");
/// Says who asks before it is root of a namespace.
const OUTER: &str =
    r#"exec unshare --map-root-user --net --mount -- sh -c "$0" sh "$(id -u)" "$(id -g)" "$@""#;
const ADDRESS: &str = "93.184.215.14";

/// The same command, in those namespaces.
pub fn inside(command: &Command, place: &Place, home: &Path) -> Result<Command> {
    let pages = home.join("public");
    fs::create_dir_all(&pages)?;
    fs::write(pages.join("index.html"), page::HTML)?;
    let hosts = home.join("hosts");
    fs::write(&hosts, format!("127.0.0.1 localhost\n{ADDRESS} example.com\n"))?;
    let command = command.as_std();
    let mut words: Vec<OsString> = ["-c", OUTER, SCRIPT].map(OsString::from).to_vec();
    words.extend([hosts.into(), pages.into(), ADDRESS.into()]);
    // Without the `setsid` that it begins with: the outer command has its own session.
    words.extend(command.get_args().map(OsString::from));
    let mut outer = place.command(Path::new("sh"), home);
    outer.args(words);
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => outer.env(name, value),
            None => outer.env_remove(name),
        };
    }
    Ok(outer)
}
