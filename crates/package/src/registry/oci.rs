//! OCI distribution: manifests, blobs and tags of one repository.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};

use super::auth::{self, Challenge, encoded};
use super::credentials::Kept;
use super::http::{
    Http, Method, Payload, Redirects, Request, Response, hop, is_same_origin, shown,
};
use crate::digest::Digest;
use crate::error::{Error, Kind, Result};
use crate::image::{ACCEPTED, INDEX};
use crate::store::{Descriptor, MANIFEST};

/// How much was done, of how much.
pub type Meter<'a> = &'a mut dyn FnMut(u64, u64);

/// How a registry is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Scheme {
    /// Except for this machine, where there is no network in between.
    Https,
    /// Asked for.
    Plain,
}

const LARGEST_MANIFEST: u64 = 4 << 20;
const LARGEST_BLOB: u64 = 4 << 30;
const MOST_PAGES: usize = 100;

/// A repository in an OCI registry.
pub struct Oci<'a> {
    http: &'a Http,
    kept: &'a Kept,
    host: String,
    base: String,
    path: String,
    authorization: Option<String>,
}

impl<'a> Oci<'a> {
    /// The repository `path` on `host`.
    #[must_use]
    pub fn new(http: &'a Http, kept: &'a Kept, host: &str, path: &str, scheme: Scheme) -> Oci<'a> {
        let scheme = if scheme == Scheme::Plain || is_local(host) { "http" } else { "https" };
        // What people call docker.io answers under another name.
        let server = if host == "docker.io" { "registry-1.docker.io" } else { host };
        Oci {
            http,
            kept,
            host: host.to_owned(),
            base: format!("{scheme}://{server}"),
            path: path.to_owned(),
            authorization: None,
        }
    }

    fn url(&self, rest: &str) -> String {
        format!("{}/v2/{}/{rest}", self.base, self.path)
    }

    /// Sends, and once more with what a 401 asks for.
    fn send(&mut self, mut request: Request<'_>) -> Result<Response> {
        // An upload may be sent elsewhere, and that place is not told who we are.
        let is_ours = is_same_origin(&request.url, &self.base);
        request.authorization = self.authorization.clone().filter(|_| is_ours);
        let response = self.http.send(&request)?;
        if response.status != 401 || !is_ours {
            return Ok(response);
        }
        if !self.is_own_answer(&response) {
            return Err(self.strange_challenge(&response));
        }
        let challenge =
            response.header("www-authenticate").and_then(Challenge::parse).ok_or_else(|| {
                Error::network(format!("{} asks for credentials of an unknown kind", self.host))
            })?;
        let credentials = self.kept.find(&self.host)?;
        let from = auth::Registry { host: &self.host, base: &self.base };
        let header = auth::answer(self.http, &challenge, credentials.as_ref(), from)?;
        request.authorization = Some(header.clone());
        self.authorization = Some(header);
        let response = self.http.send(&request)?;
        match response.status {
            401 if !self.is_own_answer(&response) => Err(self.strange_challenge(&response)),
            401 => Err(self.denied()),
            _ => Ok(response),
        }
    }

    /// Who a redirect led to may ask for credentials, but has none of this registry's to get.
    fn is_own_answer(&self, response: &Response) -> bool {
        response.has_stayed && is_same_origin(&response.url, &self.base)
    }

    fn strange_challenge(&self, response: &Response) -> Error {
        Error::new(
            Kind::Denied,
            format!(
                "{} redirects to {}, which asks for credentials; the credentials for {0} are not sent there",
                self.host,
                shown(&response.url)
            ),
            "nothing was sent to it; ask the operator of the registry",
        )
    }

    fn denied(&self) -> Error {
        let host = &self.host;
        Error::new(
            Kind::Denied,
            format!("{host} refuses access to {}", self.path),
            format!("log in with mcp login {host}"),
        )
    }

    fn unexpected(&self, what: &str, response: Response) -> Error {
        let status = response.status;
        if status == 403 {
            return self.denied();
        }
        // A registry says why in a JSON of its own; a page of another server is not worth a line.
        let said = response.bytes(64 << 10).ok().and_then(|bytes| {
            let errors: serde_json::Value = serde_json::from_slice(&bytes).ok()?;
            let message = errors["errors"][0]["message"].as_str()?.to_owned();
            Some(mcp_policy::text::word(&message).chars().take(200).collect::<String>())
        });
        let said = said.map_or(String::new(), |said| format!(": {said}"));
        Error::network(format!("{what}: {} answers {status}{said}", self.host))
    }

    /// Whether we may speak to it at all.
    pub fn check(&mut self) -> Result<()> {
        let response = self.send(Request::get(format!("{}/v2/", self.base)))?;
        match response.status {
            200 => Ok(()),
            404 => Err(Error::network(format!("{} is no registry", self.host))),
            _ => Err(self.unexpected("log in", response)),
        }
    }

    /// A manifest by tag or digest: its bytes, and what they hash to.
    pub fn manifest(&mut self, which: &str) -> Result<(Vec<u8>, Digest)> {
        self.manifest_of(which, MANIFEST)
    }

    /// The manifest of a container image, or the list of those for several platforms.
    pub fn image_manifest(&mut self, which: &str) -> Result<(Vec<u8>, Digest)> {
        self.manifest_of(which, ACCEPTED)
    }

    fn manifest_of(&mut self, which: &str, accepted: &str) -> Result<(Vec<u8>, Digest)> {
        let mut request = Request::get(self.url(&format!("manifests/{which}")));
        request.headers.push(("accept", accepted.to_owned()));
        let response = self.send(request)?;
        match response.status {
            200 => {}
            404 => {
                return Err(Error::not_found(
                    format!("{}/{} has no {which}", self.host, self.path),
                    "",
                )
                .hinted("mcp inspect --tags lists what there is"));
            }
            _ => return Err(self.unexpected("fetch the manifest", response)),
        }
        let said = response.header("docker-content-digest").map(str::to_owned);
        let bytes = response.bytes(LARGEST_MANIFEST)?;
        let found = Digest::of(&bytes);
        let wanted =
            which.parse::<Digest>().ok().or_else(|| said.and_then(|text| text.parse().ok()));
        match wanted {
            Some(wanted) if wanted != found => Err(Error::digest(
                format_args!("the manifest of {}/{}", self.host, self.path),
                wanted,
                found,
            )),
            _ => Ok((bytes, found)),
        }
    }

    /// A small blob as it is.
    pub fn small_blob(&mut self, of: &Descriptor, most: u64) -> Result<Vec<u8>> {
        let response = self.send(Request::get(self.url(&format!("blobs/{}", of.digest))))?;
        if response.status != 200 {
            return Err(self.unexpected("fetch a blob", response));
        }
        let bytes = response.bytes(most)?;
        let found = Digest::of(&bytes);
        if found == of.digest { Ok(bytes) } else { Err(Error::digest("a blob", of.digest, found)) }
    }

    /// A blob into a file: what broke off goes on where it stopped, and the whole is compared.
    pub fn blob(&mut self, of: &Descriptor, to: &Path, meter: Meter<'_>) -> Result<()> {
        if of.size > LARGEST_BLOB {
            return Err(Error::package(format!(
                "a blob of {} bytes is larger than a package can be",
                of.size
            )));
        }
        let failed = |e: std::io::Error| Error::io("write", to, &e);
        let mut file = File::options()
            .create(true)
            .truncate(true)
            .read(true)
            .write(true)
            .open(to)
            .map_err(failed)?;
        let mut done = 0;
        let mut attempt = 0;
        while done < of.size {
            let before = done;
            let outcome = self.part(of, &mut file, &mut done, meter);
            if let Err(error) = outcome {
                // Every attempt that got further is worth another.
                attempt = if done > before { 1 } else { attempt + 1 };
                if error.kind() != Kind::Network || attempt >= self.http.retry.attempts {
                    return Err(error);
                }
                self.http.retry.pause(attempt - 1, None);
            }
        }
        file.seek(SeekFrom::Start(0)).map_err(failed)?;
        let (found, _) = Digest::of_reader(&file).map_err(failed)?;
        if found == of.digest {
            return Ok(());
        }
        Err(Error::digest(format_args!("a blob of {}/{}", self.host, self.path), of.digest, found))
    }

    fn part(
        &mut self,
        of: &Descriptor,
        file: &mut File,
        done: &mut u64,
        meter: Meter<'_>,
    ) -> Result<()> {
        let mut request = Request::get(self.url(&format!("blobs/{}", of.digest)));
        if *done > 0 {
            request.headers.push(("range", format!("bytes={done}-")));
        }
        let response = self.send(request)?;
        match response.status {
            206 if *done > 0 && starts_at(&response, *done) => {}
            200 => *done = 0,
            _ => return Err(self.unexpected("fetch a blob", response)),
        }
        let failed = |e: std::io::Error| Error::machine(format!("write the download: {e}"), "");
        file.seek(SeekFrom::Start(*done)).map_err(failed)?;
        let mut reader = response.reader();
        let mut buffer = vec![0; 64 << 10];
        loop {
            let read = reader
                .read(&mut buffer)
                .map_err(|e| Error::network(format!("the download broke off: {e}")))?;
            if read == 0 {
                break;
            }
            if *done + read as u64 > of.size {
                return Err(Error::package(format!(
                    "a blob is larger than the {} bytes announced",
                    of.size
                )));
            }
            file.write_all(&buffer[..read]).map_err(failed)?;
            *done += read as u64;
            meter(*done, of.size);
        }
        if *done < of.size {
            return Err(Error::network("the download broke off"));
        }
        Ok(())
    }

    /// Whether the registry has this blob already.
    pub fn has_blob(&mut self, digest: &Digest) -> Result<bool> {
        let mut request = Request::get(self.url(&format!("blobs/{digest}")));
        request.method = Method::Head;
        Ok(self.send(request)?.status == 200)
    }

    /// Sends a blob from a file, unless it is there.
    pub fn push_blob(&mut self, of: &Descriptor, from: &Path) -> Result<()> {
        if self.has_blob(&of.digest)? {
            return Ok(());
        }
        let mut request = Request::get(self.url("blobs/uploads/"));
        request.method = Method::Post;
        let response = self.send(request)?;
        if response.status != 202 {
            return Err(self.unexpected("start an upload", response));
        }
        let location = response
            .header("location")
            .ok_or_else(|| Error::network(format!("{} does not say where to upload", self.host)))?;
        let (location, _) = hop(&self.base, location, None)?;
        let mark = if location.contains('?') { '&' } else { '?' };
        let response = self.send(Request {
            method: Method::Put,
            url: format!("{location}{mark}digest={}", encoded(&of.digest.to_string())),
            headers: vec![("content-type", "application/octet-stream".to_owned())],
            authorization: None,
            payload: Payload::File(from, of.size),
            redirects: Redirects::SameOrigin,
        })?;
        if response.status == 201 { Ok(()) } else { Err(self.unexpected("upload", response)) }
    }

    /// Puts a manifest under a tag.
    pub fn push_manifest(&mut self, tag: &str, bytes: &[u8]) -> Result<()> {
        self.put_manifest(tag, MANIFEST, bytes).map(|_| ())
    }

    /// Puts a manifest that refers to another one. A registry that does not list such manifests by itself gets the list
    /// under a tag, as the specification of OCI has it.
    pub fn push_referrer(&mut self, bytes: &[u8], kind: &str, subject: &Digest) -> Result<()> {
        let digest = Digest::of(bytes);
        let response = self.put_manifest(&digest.to_string(), MANIFEST, bytes)?;
        if response.header("oci-subject").is_some() {
            return Ok(());
        }
        let tag = format!("sha256-{}", subject.hex());
        let known = match self.manifest_of(&tag, INDEX) {
            Ok((bytes, _)) => serde_json::from_slice(&bytes).unwrap_or_else(|_| json!({})),
            Err(error) if error.kind() == Kind::NotFound => json!({}),
            Err(error) => return Err(error),
        };
        let listed = known.get("manifests").and_then(Value::as_array).cloned().unwrap_or_default();
        let mut manifests: Vec<Value> =
            listed.into_iter().filter(|it| it["digest"] != json!(digest)).collect();
        manifests.push(json!({
            "mediaType": MANIFEST, "digest": digest, "size": bytes.len(), "artifactType": kind,
        }));
        let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests});
        self.put_manifest(&tag, INDEX, index.to_string().as_bytes()).map(|_| ())
    }

    fn put_manifest(&mut self, which: &str, media_type: &str, bytes: &[u8]) -> Result<Response> {
        let response = self.send(Request {
            method: Method::Put,
            url: self.url(&format!("manifests/{which}")),
            headers: vec![("content-type", media_type.to_owned())],
            authorization: None,
            payload: Payload::Bytes(bytes.into()),
            redirects: Redirects::SameOrigin,
        })?;
        if response.status == 201 {
            Ok(response)
        } else {
            Err(self.unexpected("push the manifest", response))
        }
    }

    /// The tags of the repository.
    pub fn tags(&mut self) -> Result<Vec<String>> {
        #[derive(Deserialize)]
        struct Page {
            tags: Option<Vec<String>>,
        }
        let mut tags = Vec::new();
        let mut next = Some(self.url("tags/list?n=100"));
        for _ in 0..MOST_PAGES {
            let Some(url) = next else {
                break;
            };
            let response = self.send(Request::get(url.clone()))?;
            match response.status {
                200 => {}
                404 => {
                    return Err(Error::not_found(
                        format!("{} has no {}", self.host, self.path),
                        "",
                    ));
                }
                _ => return Err(self.unexpected("list the tags", response)),
            }
            let further = response.header("link").and_then(next_page);
            next = further.map(|to| hop(&url, to, None)).transpose()?.map(|(url, _)| url);
            let page: Page =
                serde_json::from_slice(&response.bytes(LARGEST_MANIFEST)?).map_err(|e| {
                    Error::network(format!(
                        "{} has a list of tags that cannot be read: {e}",
                        self.host
                    ))
                })?;
            tags.extend(page.tags.into_iter().flatten());
        }
        Ok(tags)
    }
}

/// `<URL>; rel="next"`.
fn next_page(header: &str) -> Option<&str> {
    let (url, rest) = header.strip_prefix('<')?.split_once('>')?;
    rest.contains("rel=\"next\"").then_some(url)
}

/// `bytes 100-199/200`.
fn starts_at(response: &Response, position: u64) -> bool {
    let start = response
        .header("content-range")
        .and_then(|range| range.strip_prefix("bytes ")?.split_once('-'));
    start.is_some_and(|(start, _)| start.parse() == Ok(position))
}

/// This machine itself, by its names and addresses.
pub(super) fn is_local(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or(rest),
        None => host.split(':').next().unwrap_or(host),
    };
    name == "localhost"
        || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}
