//! SHA-256 digests in the spelling of OCI: `sha256:` and 64 lower-case hexadecimal digits.

use std::fmt;
use std::io::{self, Read, Write};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};

use crate::error::Error;

/// A SHA-256 digest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

const PREFIX: &str = "sha256:";
const FORM: &str = "expected sha256: and 64 digits of 0-9 and a-f";

impl Digest {
    /// The digest of some bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Digest {
        Digest(Sha256::digest(bytes).into())
    }

    /// Of all that is left to read, and how much that was.
    pub fn of_reader(mut from: impl Read) -> io::Result<(Digest, u64)> {
        let mut sink = Hashing::new(io::sink());
        let length = io::copy(&mut from, &mut sink)?;
        Ok((sink.finish().1, length))
    }

    /// The 64 digits without the algorithm: the name of its file in an OCI layout.
    #[must_use]
    pub fn hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// From the bare digits, as `fileSha256` has them.
    pub fn from_hex(hex: &str) -> Result<Digest, Error> {
        let wrong = || Error::usage(format!("{hex:?} is not a SHA-256 digest"), FORM);
        if hex.len() != 64 || !hex.bytes().all(|c| c.is_ascii_digit() || (b'a'..=b'f').contains(&c))
        {
            return Err(wrong());
        }
        let mut bytes = [0; 32];
        for (byte, digits) in bytes.iter_mut().zip(hex.as_bytes().chunks(2)) {
            let digits = std::str::from_utf8(digits).map_err(|_| wrong())?;
            *byte = u8::from_str_radix(digits, 16).map_err(|_| wrong())?;
        }
        Ok(Digest(bytes))
    }
}

impl FromStr for Digest {
    type Err = Error;

    fn from_str(text: &str) -> Result<Digest, Error> {
        match text.strip_prefix(PREFIX) {
            Some(hex) => Digest::from_hex(hex),
            None => Err(Error::usage(format!("{text:?} is not a digest"), FORM)),
        }
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", self.hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Digest, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Hashes what passes through.
pub struct Hashing<W> {
    inner: W,
    hasher: Sha256,
}

impl<W> Hashing<W> {
    /// Digests what passes through `inner`.
    pub fn new(inner: W) -> Hashing<W> {
        Hashing { inner, hasher: Sha256::new() }
    }

    /// Gives `inner` back with the digest of what passed.
    pub fn finish(self) -> (W, Digest) {
        (self.inner, Digest(self.hasher.finalize().into()))
    }
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_value_and_one_spelling() {
        let empty = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(Digest::of(b"").to_string(), empty);
        assert_eq!(empty.parse::<Digest>().unwrap(), Digest::of(b""));
        for wrong in ["", "sha256:", &empty.to_uppercase(), &empty[7..], "sha512:00"] {
            assert!(wrong.parse::<Digest>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn streams_hash_as_slices_do() {
        let (digest, length) = Digest::of_reader(&b"some text"[..]).unwrap();
        assert_eq!((digest, length), (Digest::of(b"some text"), 9));
    }
}
