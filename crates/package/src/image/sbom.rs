//! What is in an image beyond its base, as SPDX 2.3: the package, what it brought along, and `mcp`. No time of this machine is
//! in it: the same image, the same bytes.

use std::collections::BTreeSet;
use std::path::Path;

use mcp_files::Links;
use serde_json::{Value, json};

use super::config::Purpose;
use crate::digest::Digest;

/// The media type of SPDX.
pub const SPDX: &str = "application/spdx+json";

const MOST: usize = 20_000;
const LARGEST: u64 = 1 << 20;

/// The document for an image, from the files of its package.
#[must_use]
pub fn spdx(root: &Path, purpose: &Purpose, image: &Digest, base: &Digest, mcp: &str) -> Value {
    let mut found = BTreeSet::new();
    search(root, &mut found);
    let own = [
        (purpose.name.clone(), purpose.version.clone()),
        ("mcp".to_owned(), mcp.to_owned()),
        ("base image".to_owned(), base.to_string()),
    ];
    let all = own.into_iter().chain(found);
    let packages: Vec<Value> = all
        .enumerate()
        .map(|(number, (name, version))| {
            json!({
                "SPDXID": format!("SPDXRef-{number}"),
                "name": name,
                "versionInfo": version,
                "downloadLocation": "NOASSERTION",
                "filesAnalyzed": false,
            })
        })
        .collect();
    let contains: Vec<Value> = (0..packages.len())
        .map(|number| {
            json!({
                "spdxElementId": "SPDXRef-DOCUMENT",
                "relationshipType": "DESCRIBES",
                "relatedSpdxElement": format!("SPDXRef-{number}"),
            })
        })
        .collect();
    json!({
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": purpose.reference,
        "documentNamespace": format!("https://spdx.org/spdxdocs/mcp-image-{}", image.hex()),
        "creationInfo": {"created": "1970-01-01T00:00:00Z", "creators": [format!("Tool: mcp-{mcp}")]},
        "packages": packages,
        "relationships": contains,
    })
}

/// Packages of npm (`node_modules/NAME/package.json`) and of Python (`NAME-VERSION.dist-info`).
fn search(directory: &Path, found: &mut BTreeSet<(String, String)>) {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    for entry in entries {
        if found.len() >= MOST || !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if let Some((name, version)) =
            name.strip_suffix(".dist-info").and_then(|name| name.rsplit_once('-'))
        {
            found.insert((name.to_owned(), version.to_owned()));
        }
        let parent = directory.file_name().unwrap_or_default();
        let is_npm = parent == "node_modules" || parent.to_string_lossy().starts_with('@');
        if is_npm && let Some(named) = npm(&path.join("package.json")) {
            found.insert(named);
        }
        search(&path, found);
    }
}

fn npm(path: &Path) -> Option<(String, String)> {
    let text = mcp_files::read_text(path, LARGEST, Links::Refuse).ok()?;
    let value: Value = serde_json::from_str(&text).ok()?;
    let of = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    Some((of("name")?, of("version")?))
}
