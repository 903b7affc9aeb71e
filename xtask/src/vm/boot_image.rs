//! From the kernel as it is packaged to the plain executable in it: an emulated processor takes
//! longer to expand it than to boot.

use std::path::Path;

use crate::Result;
use crate::vm::tools;

/// Where the boot protocol says how long the loader is, where the payload begins, and its length.
const SETUP_SECTORS: usize = 0x1f1;
const PAYLOAD_OFFSET: usize = 0x248;
const PAYLOAD_LENGTH: usize = 0x24c;

/// Writes the executable of the packaged kernel to `to`.
pub fn extract(packaged: &Path, to: &Path) -> Result<()> {
    let image = std::fs::read(packaged)?;
    let payload =
        payload(&image).ok_or_else(|| format!("{}: no boot image", packaged.display()))?;
    let raw = to.with_extension("raw");
    std::fs::write(&raw, payload)?;
    let kernel = tools::expanded(&raw)?;
    std::fs::remove_file(&raw)?;
    if !kernel.starts_with(b"\x7fELF") {
        return Err(format!("{}: the kernel in it cannot be expanded", packaged.display()).into());
    }
    Ok(std::fs::write(to, kernel)?)
}

fn payload(image: &[u8]) -> Option<&[u8]> {
    let number = |at: usize| {
        let bytes = image.get(at..at + 4)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?) as usize)
    };
    let sectors = match *image.get(SETUP_SECTORS)? {
        0 => 4,
        sectors => usize::from(sectors),
    };
    let start = (sectors + 1) * 512 + number(PAYLOAD_OFFSET)?;
    image.get(start..start.checked_add(number(PAYLOAD_LENGTH)?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_payload_is_where_the_header_says() {
        let mut image = vec![0; 2048];
        image[SETUP_SECTORS] = 1;
        image[PAYLOAD_OFFSET] = 16;
        image[PAYLOAD_LENGTH] = 3;
        image[1024 + 16..1024 + 19].copy_from_slice(b"abc");
        assert_eq!(payload(&image), Some(b"abc".as_slice()));
        assert_eq!(payload(&image[..1030]), None);
        assert_eq!(payload(b"short"), None);
    }
}
