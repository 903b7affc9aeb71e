//! Signatures by minisign, over the package's OCI manifest.
//!
//! The trusted comment, which is signed as well, says name, version and digest. So a good signature
//! of another package, or of an older version under a tag that was moved, is no good here.

use std::io::Cursor;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use minisign::{PublicKeyBox, SecretKey, SecretKeyBox, SignatureBox};

use crate::digest::Digest;
use crate::error::{Error, Kind, Result};

/// A minisign public key.
pub struct PublicKey(minisign::PublicKey);

/// Under which tag a package's signature is kept.
#[must_use]
pub fn signature_tag(digest: &Digest) -> String {
    format!("sha256-{}.minisig", digest.hex())
}

fn comment(name: &str, version: &str, digest: &Digest) -> String {
    format!("mcp-package name={name} version={version} digest={digest}")
}

fn untrusted(why: impl std::fmt::Display) -> Error {
    Error::new(
        Kind::Untrusted,
        format!("the signature is not valid: {why}"),
        "nothing of the package is used",
    )
}

impl PublicKey {
    /// The key itself, or a file that holds it.
    pub fn read(text: &str) -> Result<PublicKey> {
        if let Ok(key) = minisign::PublicKey::from_base64(text) {
            return Ok(PublicKey(key));
        }
        let path = Path::new(text);
        let wrong = || {
            Error::usage(
                format!("{text}: is neither a minisign public key nor a file with one"),
                "",
            )
        };
        let content = key_text(path).map_err(|_| wrong())?;
        let key = PublicKeyBox::from_string(&content).and_then(PublicKeyBox::into_public_key);
        key.or_else(|_| minisign::PublicKey::from_base64(content.trim()))
            .map(PublicKey)
            .map_err(|_| wrong())
    }

    /// Checks a signature over these bytes, and that it is for this package. `version` is what was
    /// asked for, where a person asked for one.
    pub fn check(
        &self,
        signature: &str,
        manifest: &[u8],
        is_name: impl Fn(&str) -> bool,
        version: Option<&str>,
    ) -> Result<()> {
        let signature = SignatureBox::from_string(signature).map_err(untrusted)?;
        minisign::verify(&self.0, &signature, Cursor::new(manifest), true, false, false)
            .map_err(untrusted)?;
        let comment = signature.trusted_comment().map_err(untrusted)?;
        let mut words = comment.split(' ');
        let is_ours = words.next() == Some("mcp-package");
        let mut get =
            |key: &str| words.next().and_then(|word| word.strip_prefix(key)).map(str::to_owned);
        let (Some(name), Some(signed), Some(digest), true) =
            (get("name="), get("version="), get("digest="), is_ours)
        else {
            return Err(untrusted("its comment does not say what it signs"));
        };
        let found = Digest::of(manifest);
        match digest.parse::<Digest>() {
            Ok(signed) if signed == found => {}
            Ok(signed) => return Err(Error::digest("the signed package", signed, found)),
            Err(error) => return Err(untrusted(error)),
        }
        if !is_name(&name) {
            return Err(untrusted(format_args!("it is for {name}, which was not asked for")));
        }
        match version {
            Some(asked) if asked != signed => Err(untrusted(format_args!(
                "it is for version {signed}, and {asked} was asked for"
            ))),
            _ => Ok(()),
        }
    }
}

/// Whether a secret key needs a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Locked {
    /// It has no password.
    No,
    /// It has one.
    Yes,
}

fn key_bytes(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text.lines().nth(1)?.trim()).ok()
}

fn key_text(path: &Path) -> std::io::Result<String> {
    mcp_files::read_text(path, 64 << 10, mcp_files::Links::Follow)
}

/// Two bytes of algorithm, then two for how the password is used: zero for not at all.
fn lock_of(bytes: &[u8]) -> Locked {
    if bytes.get(2..4) == Some(&[0, 0]) { Locked::No } else { Locked::Yes }
}

/// Whether the secret key in a file needs a password.
pub fn is_locked(key: &Path) -> Result<Locked> {
    let text = key_text(key).map_err(|e| Error::io("read", key, &e))?;
    let bytes = key_bytes(&text).ok_or_else(|| {
        Error::usage(
            format!("{}: is not a minisign secret key", key.display()),
            "make one with minisign -G",
        )
    })?;
    Ok(lock_of(&bytes))
}

/// The text of a signature, by the secret key in a file.
pub fn sign(
    key: &Path,
    password: &str,
    manifest: &[u8],
    name: &str,
    version: &str,
) -> Result<String> {
    let failed =
        |e: &dyn std::fmt::Display| Error::machine(format!("sign with {}: {e}", key.display()), "");
    let text = key_text(key).map_err(|e| Error::io("read", key, &e))?;
    let bytes = key_bytes(&text).ok_or_else(|| failed(&"is not a minisign secret key"))?;
    let secret = match lock_of(&bytes) {
        Locked::No => SecretKey::from_bytes(&bytes).map_err(|e| failed(&e))?,
        Locked::Yes => {
            let boxed = SecretKeyBox::from_string(&text).map_err(|e| failed(&e))?;
            boxed.into_secret_key(Some(password.to_owned())).map_err(|e| failed(&e))?
        }
    };
    let comment = comment(name, version, &Digest::of(manifest));
    let signature = minisign::sign(
        None,
        &secret,
        Cursor::new(manifest),
        Some(&comment),
        Some("signature by mcp"),
    );
    signature.map(SignatureBox::into_string).map_err(|e| failed(&e))
}
