//! The platforms that programs are released for, and what the package managers call them.

#[derive(Debug, PartialEq, Eq)]
pub struct Platform {
    pub triple: &'static str,
    /// `process.platform` and `process.arch` of Node.
    pub node: (&'static str, &'static str),
    /// Platform tags of a wheel. A static program needs no C library, so that of both kinds of Linux will do.
    pub wheel: &'static [&'static str],
    pub debian: Option<&'static str>,
    /// `on_macos`, `on_linux` and `on_arm`, `on_intel`.
    pub homebrew: Option<(&'static str, &'static str)>,
    /// Of programs.
    pub suffix: &'static str,
}

impl Platform {
    pub fn is_windows(&self) -> bool {
        self.node.0 == "win32"
    }

    /// As npm's packages are named.
    pub fn node_name(&self) -> String {
        format!("{}-{}", self.node.0, self.node.1)
    }
}

pub static PLATFORMS: [Platform; 5] = [
    Platform {
        triple: "x86_64-unknown-linux-gnu",
        node: ("linux", "x64"),
        wheel: &["manylinux_2_17_x86_64", "manylinux2014_x86_64", "musllinux_1_1_x86_64"],
        debian: Some("amd64"),
        homebrew: Some(("on_linux", "on_intel")),
        suffix: "",
    },
    Platform {
        triple: "aarch64-unknown-linux-gnu",
        node: ("linux", "arm64"),
        wheel: &["manylinux_2_17_aarch64", "manylinux2014_aarch64", "musllinux_1_1_aarch64"],
        debian: Some("arm64"),
        homebrew: Some(("on_linux", "on_arm")),
        suffix: "",
    },
    Platform {
        triple: "aarch64-apple-darwin",
        node: ("darwin", "arm64"),
        // What `tools/cross` links for.
        wheel: &["macosx_13_0_arm64"],
        debian: None,
        homebrew: Some(("on_macos", "on_arm")),
        suffix: "",
    },
    Platform {
        triple: "x86_64-apple-darwin",
        node: ("darwin", "x64"),
        wheel: &["macosx_13_0_x86_64"],
        debian: None,
        homebrew: Some(("on_macos", "on_intel")),
        suffix: "",
    },
    Platform {
        triple: "x86_64-pc-windows-gnu",
        node: ("win32", "x64"),
        wheel: &["win_amd64"],
        debian: None,
        homebrew: None,
        suffix: ".exe",
    },
];

pub fn known(triple: &str) -> Result<&'static Platform, String> {
    PLATFORMS.iter().find(|platform| platform.triple == triple).ok_or_else(|| {
        let triples: Vec<_> = PLATFORMS.iter().map(|platform| platform.triple).collect();
        format!("nothing is released for {triple}; one of {}", triples.join(", "))
    })
}
