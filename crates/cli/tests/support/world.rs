//! A world without the internet: addresses, names and servers of the test's own, in namespaces of
//! their own, and the launcher under test inside.

use std::ffi::OsString;

use super::{Scratch, probe_path};

pub struct World {
    scratch: Scratch,
    spec: Vec<String>,
}

impl World {
    /// `api.test` is 9.9.9.9, which looks like a public address; servers there answer on 443 and
    /// 80, speak first on 22, echo on 7 and on udp 99. The host's own loopback has a server on 443,
    /// and so has its address in a local network, 192.168.7.7.
    pub fn new() -> World {
        let world = World { scratch: Scratch::new(), spec: Vec::new() };
        world
            .with("ip=9.9.9.9")
            .with("name=api.test>9.9.9.9")
            .with("serve=9.9.9.9:443")
            .with("serve=9.9.9.9:80")
            .with("banner=9.9.9.9:22")
            .with("echo=9.9.9.9:7")
            .with("udp=9.9.9.9:99")
            .with("serve=127.0.0.1:443")
            .with("own=192.168.7.7")
            .with("serve=192.168.7.7:443")
    }

    /// A word more; the probe's act `world` has the list.
    pub fn with(mut self, word: impl Into<String>) -> World {
        self.spec.push(word.into());
        self
    }

    /// The words that put a command into this world.
    pub fn words(&self) -> Vec<OsString> {
        vec![
            probe_path().into(),
            "world".into(),
            self.scratch.join("log").into(),
            self.spec.join(";").into(),
        ]
    }

    /// What the servers of the world have seen, of all runs in it.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.scratch.join("log")).unwrap_or_default()
    }

    /// Whether a server of the world has seen this.
    pub fn saw(&self, text: &str) -> bool {
        self.log().contains(text)
    }
}
