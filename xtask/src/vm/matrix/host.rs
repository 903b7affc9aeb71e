//! Kinds of hosts: what an administrator, a distribution or a container leaves of a kernel.

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Plain,
    /// For everybody, root included.
    NoUserNamespaces,
    /// For everybody but root; a setting that Debian adds.
    NoUnprivileged,
    NoLandlock,
    /// Neither user namespaces nor Landlock.
    Neither,
}

impl Kind {
    pub const ALL: [Kind; 5] = [
        Kind::Plain,
        Kind::NoUserNamespaces,
        Kind::NoUnprivileged,
        Kind::NoLandlock,
        Kind::Neither,
    ];

    /// For file names and `--only`.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Plain => "plain",
            Kind::NoUserNamespaces => "no-userns",
            Kind::NoUnprivileged => "no-unprivileged",
            Kind::NoLandlock => "no-landlock",
            Kind::Neither => "neither",
        }
    }

    /// For the document.
    pub fn describe(self) -> &'static str {
        match self {
            Kind::Plain => "as it comes",
            Kind::NoUserNamespaces => "`user.max_user_namespaces=0`",
            Kind::NoUnprivileged => "`kernel.unprivileged_userns_clone=0`",
            Kind::NoLandlock => "no Landlock",
            Kind::Neither => "`user.max_user_namespaces=0`, no Landlock",
        }
    }

    pub fn sysctls(self) -> &'static [&'static str] {
        match self {
            Kind::Plain | Kind::NoLandlock => &[],
            Kind::NoUserNamespaces | Kind::Neither => &["user.max_user_namespaces=0"],
            Kind::NoUnprivileged => &["kernel.unprivileged_userns_clone=0"],
        }
    }

    /// Words for the kernel's command line.
    pub fn append(self) -> &'static [&'static str] {
        match self {
            Kind::NoLandlock | Kind::Neither => &["lsm=lockdown,yama"],
            _ => &[],
        }
    }
}
