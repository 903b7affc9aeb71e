//! The command's arguments and environment.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;

use super::InitContext;
use crate::core::request::HOME;
use crate::linux::phases::LinuxPlan;
use crate::linux::step::ConnectionRelay;
use crate::linux::sys;
use mcp_net::variables::variables;

impl InitContext<'_> {
    /// The strings for execve, made before the launcher's own environment is overwritten.
    pub(super) fn compose(&mut self) -> io::Result<()> {
        let request = self.request;
        let own = self.plan.private_directories();
        self.argv = request.argv.iter().map(|a| sys::c_string(a)).collect::<Result<_, _>>()?;
        let proxy = proxy_variables(self.plan);
        let is_given = |name: &OsStr| proxy.iter().all(|(ours, _)| name != *ours);
        let given = request.env.iter().filter(|(name, _)| is_given(name));
        let public = given.map(|(name, value)| match own {
            Some(own) => sys::c_variable(name, &moved(value, &own.home, &own.tmp)),
            None => sys::c_variable(name, value),
        });
        let proxied =
            proxy.iter().map(|(name, value)| sys::c_variable(name.as_ref(), value.as_ref()));
        let public = public.chain(proxied);
        let has_tmp = request.env.iter().any(|(name, _)| name == "TMPDIR");
        let tmp = own.filter(|_| !has_tmp).map(|own| own.tmp.as_os_str());
        let public = public.chain(tmp.map(|tmp| sys::c_variable("TMPDIR".as_ref(), tmp)));
        let secret = request
            .secrets
            .iter()
            .filter(|(name, _)| is_given(name))
            .map(|(name, value)| sys::c_variable(name, value.reveal()));
        self.env = public.chain(secret).collect::<Result<_, _>>()?;
        Ok(())
    }
}

/// What leads programs to the proxy, where they can have no other network.
fn proxy_variables(plan: &LinuxPlan) -> Vec<(&'static str, String)> {
    match plan.connection_relay.as_ref().map(|connection_relay| &connection_relay.step) {
        Some(ConnectionRelay::Proxy { at, .. }) => variables(&at.to_string()),
        _ => Vec::new(),
    }
}

/// A value that is a path of the private root which this run does not have.
fn moved(value: &OsStr, home: &Path, tmp: &Path) -> OsString {
    match Path::new(value).strip_prefix(HOME) {
        Ok(below) if below.as_os_str().is_empty() => home.into(),
        Ok(below) => home.join(below).into(),
        Err(_) if value == "/tmp" => tmp.into(),
        Err(_) => value.to_owned(),
    }
}
