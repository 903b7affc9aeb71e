//! A .deb: an `ar` archive of two tar archives, by deb(5). The program is static, so it depends on nothing.

use super::Release;
use super::archive::{Files, gzip};
use crate::Result;

pub const NAME: &str = "mcp-sandbox";

pub fn make(release: &Release, architecture: &str, program: &[u8]) -> Result<(String, Vec<u8>)> {
    let data = data(release, program)?;
    let size: usize = data.contents().map(|(_, content)| content.len().div_ceil(1024)).sum();
    let sums: String = data
        .contents()
        .map(|(path, content)| format!("{}  {path}\n", super::hex_sha256(content)))
        .collect();
    let mut control = Files::default();
    control.file("control", control_file(&release.version, architecture, size));
    control.file("sha256sums", sums);

    let epoch = release.epoch;
    let control = gzip(&control.tar(epoch, &[])?)?;
    let data = gzip(&data.tar(epoch, &data.directories())?)?;
    let mut deb = ar::Builder::new(Vec::new());
    let members: [(&[u8], &[u8]); 3] =
        [(b"debian-binary", b"2.0\n"), (b"control.tar.gz", &control), (b"data.tar.gz", &data)];
    for (name, content) in members {
        let mut header = ar::Header::new(name.to_vec(), u64::try_from(content.len())?);
        header.set_mode(0o100_644);
        header.set_mtime(epoch);
        deb.append(&header, content)?;
    }
    Ok((format!("{NAME}_{}_{architecture}.deb", release.version), deb.into_inner()?))
}

fn data(release: &Release, program: &[u8]) -> Result<Files> {
    let mut files = Files::default();
    files.program("usr/bin/mcp", program);
    files.link("usr/bin/mcp-sandbox", "mcp");
    for (name, text) in &release.shared.man_pages {
        files.file(format!("usr/share/man/man1/{name}.gz"), gzip(text)?);
    }
    for completion in &release.shared.completions {
        // Debian's zsh looks elsewhere than zsh's own default below /usr/local.
        let place = completion.place.replace("zsh/site-functions", "zsh/vendor-completions");
        files.file(format!("usr/{place}"), completion.text.clone());
    }
    let documents = format!("usr/share/doc/{NAME}");
    files.file(format!("{documents}/copyright"), copyright(release));
    files
        .file(format!("{documents}/changelog.gz"), gzip(&release.shared.document("CHANGELOG.md"))?);
    files.file(format!("{documents}/README.md"), release.shared.document("README.md"));
    files.file(format!("{documents}/mcp.cdx.json.gz"), gzip(&release.sbom)?);
    Ok(files)
}

fn control_file(version: &str, architecture: &str, kibibytes: usize) -> String {
    format!(
        "Package: {NAME}\n\
         Version: {version}\n\
         Architecture: {architecture}\n\
         Maintainer: the mcp authors <{NAME}@packages.invalid>\n\
         Installed-Size: {kibibytes}\n\
         Section: utils\n\
         Priority: optional\n\
         Suggests: nodejs, npm, python3-pip\n\
         Description: run MCP servers and commands of agents in a sandbox\n \
         Each program has its own view of the file system, its own network with a\n \
         list of hosts it may reach, limits and a timeout, and a report of what the\n \
         kernel enforced. No root, no daemon, no image.\n"
    )
}

/// Both licences as they are: the program is under either.
fn copyright(release: &Release) -> Vec<u8> {
    let mut text = b"mcp is licensed under MIT or Apache-2.0, at your choice.\n\n".to_vec();
    for name in ["LICENSE-MIT", "LICENSE-APACHE"] {
        text.extend(release.shared.document(name));
        text.push(b'\n');
    }
    text
}
