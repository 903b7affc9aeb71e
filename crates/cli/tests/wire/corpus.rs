//! Every file of the corpus there and back.

use std::fs;
use std::path::PathBuf;

use mcp_clients::Format;

use crate::place::Home;
use crate::samples::{self, Sample};

fn shown(sample: &Sample) -> String {
    format!("{} ({})", sample.client.id, sample.layout)
}

/// The samples in as few homes as hold them: a client has one file in each.
fn homes(home: &Home) -> Vec<Vec<(PathBuf, Sample)>> {
    let mut groups: Vec<Vec<(PathBuf, Sample)>> = Vec::new();
    for sample in samples::all(home.path().to_str().unwrap()) {
        let Some(path) = home.file_of(sample.client) else {
            continue;
        };
        match groups.iter_mut().find(|group| group.iter().all(|(other, _)| *other != path)) {
            Some(group) => group.push((path, sample)),
            None => groups.push(vec![(path, sample)]),
        }
    }
    let count: usize = groups.iter().map(Vec::len).sum();
    println!("{count} files in {} homes", groups.len());
    assert!(count >= 150, "{count}");
    groups
}

fn write(group: &[(PathBuf, Sample)]) {
    for (path, sample) in group {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, &sample.bytes).unwrap();
    }
}

const COMMENTS: [&str; 8] = [
    "runs it",
    "// word",
    "# word",
    "# about",
    "// settings",
    "/* the servers",
    "// the",
    "/* none */",
];

#[test]
fn there_and_back_byte_for_byte() {
    let home = Home::new();
    for group in homes(&home) {
        write(&group);
        home.mcp(&["wire", "--yes"]).good();
        let mut wired = Vec::new();
        for (path, sample) in &group {
            let once = fs::read(path).unwrap();
            let is_without = sample.layout == "a file without servers";
            assert_eq!(once == sample.bytes, is_without, "{}", shown(sample));
            for comment in COMMENTS {
                let count = |bytes: &[u8]| String::from_utf8_lossy(bytes).matches(comment).count();
                assert_eq!(count(&once), count(&sample.bytes), "{}: {comment}", shown(sample));
            }
            wired.push(once);
        }
        // All but docker, which stays as it is and is said.
        let left = home.mcp(&["wire", "--check"]);
        assert!(left.out.lines().all(|line| line.contains("docker")), "{}", left.out);
        home.mcp(&["wire", "--yes"]).good();
        for ((path, sample), once) in group.iter().zip(&wired) {
            assert!(fs::read(path).unwrap() == *once, "{}: wired twice", shown(sample));
        }
        home.mcp(&["unwire"]).good();
        for (path, sample) in &group {
            let back = fs::read(path).unwrap();
            let text = String::from_utf8_lossy(&back);
            assert!(back == sample.bytes, "{}: not as it was\n{text}", shown(sample));
            fs::remove_file(path).unwrap();
        }
    }
    // No copy of what was in them is left.
    assert_eq!(fs::read_dir(home.at(".local/share/mcp/wire/originals")).unwrap().count(), 0);
}

/// What others changed meanwhile stays, and what was ours goes.
#[test]
fn back_by_structure_where_the_file_has_changed() {
    let home = Home::new();
    for group in homes(&home) {
        write(&group);
        home.mcp(&["wire", "--yes"]).good();
        // A comment before the first line is a change that every format takes.
        let changed = |text: &str, format: Format| {
            let body = text.strip_prefix('\u{feff}').unwrap_or(text);
            let sign = if matches!(format, Format::Toml | Format::Yaml) { "#" } else { "//" };
            format!("{}{sign} changed by hand\n{body}", &text[..text.len() - body.len()])
        };
        for (path, sample) in &group {
            let text = fs::read_to_string(path).unwrap();
            fs::write(path, changed(&text, sample.client.format)).unwrap();
        }
        home.mcp(&["unwire"]).good();
        for (path, sample) in &group {
            let before = String::from_utf8(sample.bytes.clone()).unwrap();
            let back = fs::read_to_string(path).unwrap();
            assert_eq!(back, changed(&before, sample.client.format), "{}", shown(sample));
            fs::remove_file(path).unwrap();
        }
    }
}
