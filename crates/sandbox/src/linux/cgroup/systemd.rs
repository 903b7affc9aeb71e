//! The systemd user manager, asked for a scope of our own: a cgroup that it hands over, with this
//! process moved into it, and removes when the last process in it has ended.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::dbus::Connection;
use super::dbus_wire::{Arguments, Incoming, Method, Socket, socket_of};

/// What D-Bus programs customarily wait for an answer; it mostly takes milliseconds. A manager that
/// takes longer is not waited for: limits degrade, the run starts.
const PATIENCE: Duration = Duration::from_secs(25);

const NAME: &str = "org.freedesktop.systemd1";
const MANAGER: Method<'static> = Method {
    destination: NAME,
    path: "/org/freedesktop/systemd1",
    interface: "org.freedesktop.systemd1.Manager",
    member: "",
};
const BUS: Method<'static> = Method {
    destination: "org.freedesktop.DBus",
    path: "/org/freedesktop/DBus",
    interface: "org.freedesktop.DBus",
    member: "",
};
const JOBS: &str = "type='signal',interface='org.freedesktop.systemd1.Manager',member='JobRemoved'";

pub struct Manager {
    /// Its own socket: no bus between, so one answer less to wait for.
    private: Option<Socket>,
    bus: Option<Socket>,
}

impl Manager {
    /// `None` where there is no socket to ask at.
    pub fn of_user() -> Option<Manager> {
        let uid = rustix::process::getuid().as_raw();
        let directory = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        let directory = directory
            .filter(|directory| directory.is_absolute())
            .unwrap_or_else(|| PathBuf::from(format!("/run/user/{uid}")));
        let socket = |name: &str| {
            let path = directory.join(name);
            path.exists().then(|| Socket::Path(path.as_os_str().as_bytes().to_vec()))
        };
        // A bus without a manager is no help.
        let private = socket("systemd/private")?;
        let named = std::env::var("DBUS_SESSION_BUS_ADDRESS").ok();
        let bus = named.as_deref().and_then(socket_of).or_else(|| socket("bus"));
        Some(Manager { private: Some(private), bus })
    }

    /// Has this process moved into a new scope of this name, and waits until it is there.
    pub fn start_scope(&self, unit: &str) -> Result<(), String> {
        let until = Instant::now() + PATIENCE;
        let uid = rustix::process::getuid().as_raw();
        let mut why = String::new();
        for (socket, is_bus) in [(&self.private, false), (&self.bus, true)] {
            let Some(socket) = socket else {
                continue;
            };
            match Connection::open(socket, uid, until) {
                Ok(connection) => return Talk { connection }.scope(unit, is_bus),
                Err(e) => why = e.to_string(),
            }
        }
        Err(why)
    }
}

struct Talk {
    connection: Connection,
}

impl Talk {
    fn scope(&mut self, unit: &str, is_bus: bool) -> Result<(), String> {
        let start = self.ask(unit, is_bus).map_err(|e| e.to_string())?;
        let mut job = None;
        // The job may be done before its number arrives.
        let mut ended: Vec<(String, String)> = Vec::new();
        loop {
            match self.connection.next().map_err(|e| e.to_string())? {
                Incoming::Return { to, first } if to == start => job = first,
                Incoming::Error { to, name, text } if to == start => {
                    return Err(if text.is_empty() { name } else { text });
                }
                Incoming::JobRemoved { job, result } => ended.push((job, result)),
                _ => {}
            }
            let result = ended.iter().find(|(ended, _)| Some(ended) == job.as_ref());
            match result.map(|(_, result)| result.as_str()) {
                None => {}
                Some("done") => return Ok(()),
                Some(other) => return Err(format!("its job ended with {other}")),
            }
        }
    }

    fn ask(&mut self, unit: &str, is_bus: bool) -> io::Result<u32> {
        let nothing = Arguments::default();
        if is_bus {
            self.connection.call(Method { member: "Hello", ..BUS }, "", &nothing)?;
            let mut rule = Arguments::default();
            rule.string(JOBS);
            self.connection.call(Method { member: "AddMatch", ..BUS }, "s", &rule)?;
            self.connection.call(Method { member: "Subscribe", ..MANAGER }, "", &nothing)?;
        }
        let mut arguments = Arguments::default();
        arguments.string(unit).string("fail");
        arguments.array(8, |properties| {
            properties.property("Description", "s", |value| {
                value.string("a sandbox of mcp");
            });
            properties.property("Delegate", "b", |value| {
                value.boolean(true);
            });
            properties.property("CollectMode", "s", |value| {
                value.string("inactive-or-failed");
            });
            properties.property("PIDs", "au", |value| {
                value.array(4, |pids| {
                    pids.u32(std::process::id());
                });
            });
        });
        arguments.array(8, |_| {});
        let method = Method { member: "StartTransientUnit", ..MANAGER };
        self.connection.call(method, "ssa(sv)a(sa(sv))", &arguments)
    }
}
