//! The reference of a container image.
//!
//! Stops: an image that changes under its name. A tag is another image tomorrow; a digest is the same bytes for ever.

use std::fmt;

use mcp_policy::text;

use crate::error::{Error, Result};

/// An image, by digest unless a person said that a tag will do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image(String);

/// Whether an image must be named by its digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pinning {
    Digest,
    TagWillDo,
}

impl Image {
    /// `registry.example.com/team/notes@sha256:…`.
    ///
    /// # Errors
    /// Where it has no digest, or is no reference at all.
    pub fn pinned(reference: &str) -> Result<Image> {
        Image::read(reference, Pinning::Digest)
    }

    /// The same, and also `registry.example.com/team/notes:1.0`.
    ///
    /// # Errors
    /// Where it is no reference at all.
    pub fn by_tag(reference: &str) -> Result<Image> {
        Image::read(reference, Pinning::TagWillDo)
    }

    fn read(reference: &str, pinning: Pinning) -> Result<Image> {
        let shown = text::word(reference);
        let (name, digest) = match reference.split_once('@') {
            Some((name, digest)) => (name, Some(digest)),
            None => (reference, None),
        };
        let plain = |c: char| c.is_ascii_alphanumeric() || "._-/:".contains(c);
        let edge = |c: char| c.is_ascii_alphanumeric();
        let is_name = name.chars().all(plain)
            && name.starts_with(edge)
            && name.ends_with(edge)
            && !name.contains("//")
            && reference.len() <= 512;
        if !is_name {
            return Err(Error::new(format!("{shown} is no image: write HOST/NAME@sha256:DIGEST")));
        }
        let is_hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
        match digest {
            Some(digest) => match digest.strip_prefix("sha256:") {
                Some(hex) if hex.len() == 64 && hex.chars().all(is_hex) => {
                    Ok(Image(reference.to_owned()))
                }
                _ => Err(Error::new(format!(
                    "{shown}: a digest is sha256: and 64 digits from 0 to f"
                ))),
            },
            None if pinning == Pinning::TagWillDo => Ok(Image(reference.to_owned())),
            None => Err(Error::new(format!(
                "{shown} has no digest, and a tag may be another image tomorrow: write {shown}@sha256:DIGEST (`mcp image --push` \
                 prints it), or --allow-tag"
            ))),
        }
    }
}

impl fmt::Display for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_refused_unless_it_will_do() {
        let digest = format!("sha256:{}", "0a".repeat(32));
        let pinned = format!("registry.example.com:5000/team/notes:1@{digest}");
        assert_eq!(Image::pinned(&pinned).unwrap().to_string(), pinned);
        assert!(Image::pinned("registry.example.com/notes:1").is_err());
        assert!(Image::by_tag("registry.example.com/notes:1").is_ok());
    }

    #[test]
    fn what_is_no_image_is_refused() {
        let digest = format!("sha256:{}", "0a".repeat(32));
        for name in ["", "-v", "a b", "a\nb", "a//b", "a/", "a\"b", "a#b"] {
            assert!(Image::by_tag(&format!("{name}@{digest}")).is_err(), "{name:?}");
        }
        for digest in ["sha256:0a", "md5:00", &digest.to_uppercase(), &format!("{digest}\n")] {
            assert!(Image::pinned(&format!("a/b@{digest}")).is_err(), "{digest:?}");
        }
    }
}
