//! Kinds of hosts: what an administrator, a distribution or a container leaves of a kernel.

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HostKind {
    Plain,
    /// For everybody, root included.
    NoUserNamespaces,
    /// For everybody but root; a setting that Debian adds.
    NoUnprivileged,
    NoLandlock,
    /// Neither user namespaces nor Landlock.
    Neither,
}

impl HostKind {
    pub const ALL: [HostKind; 5] = [
        HostKind::Plain,
        HostKind::NoUserNamespaces,
        HostKind::NoUnprivileged,
        HostKind::NoLandlock,
        HostKind::Neither,
    ];

    /// For file names and `--only`.
    pub fn name(self) -> &'static str {
        match self {
            HostKind::Plain => "plain",
            HostKind::NoUserNamespaces => "no-userns",
            HostKind::NoUnprivileged => "no-unprivileged",
            HostKind::NoLandlock => "no-landlock",
            HostKind::Neither => "neither",
        }
    }

    /// For the document.
    pub fn describe(self) -> &'static str {
        match self {
            HostKind::Plain => "as it comes",
            HostKind::NoUserNamespaces => "`user.max_user_namespaces=0`",
            HostKind::NoUnprivileged => "`kernel.unprivileged_userns_clone=0`",
            HostKind::NoLandlock => "no Landlock",
            HostKind::Neither => "`user.max_user_namespaces=0`, no Landlock",
        }
    }

    pub fn sysctls(self) -> &'static [&'static str] {
        match self {
            HostKind::Plain | HostKind::NoLandlock => &[],
            HostKind::NoUserNamespaces | HostKind::Neither => &["user.max_user_namespaces=0"],
            HostKind::NoUnprivileged => &["kernel.unprivileged_userns_clone=0"],
        }
    }

    /// Words for the kernel's command line.
    pub fn append(self) -> &'static [&'static str] {
        match self {
            HostKind::NoLandlock | HostKind::Neither => &["lsm=lockdown,yama"],
            _ => &[],
        }
    }
}
