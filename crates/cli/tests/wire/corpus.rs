//! Every file of the corpus there and back.

use std::fs;

use crate::place::Home;
use crate::samples::{self, Sample};

fn shown(sample: &Sample) -> String {
    format!("{} ({})", sample.client.id, sample.layout)
}

#[test]
fn there_and_back_byte_for_byte() {
    let home = Home::new();
    let samples = samples::all(home.path().to_str().unwrap());
    let mut tried = 0;
    for sample in &samples {
        let Some(path) = home.file_of(sample.client) else {
            continue;
        };
        let name = shown(sample);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &sample.bytes).unwrap();
        let id = sample.client.id.as_str();
        let has_servers = home.mcp(&["wire", "--check", "--client", id]).code == 1;
        let wired = home.mcp(&["wire", "--yes", "--client", id]);
        assert_eq!(
            wired.code,
            0,
            "{name}\n{}\n{}",
            wired.err,
            String::from_utf8_lossy(&sample.bytes)
        );
        let once = fs::read(&path).unwrap();
        assert_eq!(once != sample.bytes, has_servers, "{name}: {}", wired.err);
        for comment in [
            "runs it",
            "// word",
            "# word",
            "# about",
            "// settings",
            "/* the servers",
            "// the",
            "/* none */",
        ] {
            let count = |bytes: &[u8]| String::from_utf8_lossy(bytes).matches(comment).count();
            assert_eq!(count(&once), count(&sample.bytes), "{name}: comments");
        }
        // All but docker, which stays as it is and is said.
        let left = home.mcp(&["wire", "--check", "--client", id]);
        assert!(left.out.lines().all(|line| line.contains("docker")), "{name}: {}", left.out);
        home.mcp(&["wire", "--yes", "--client", id]).good();
        assert_eq!(fs::read(&path).unwrap(), once, "{name}: wired twice");
        home.mcp(&["unwire", "--client", id]).good();
        let back = fs::read(&path).unwrap();
        assert!(back == sample.bytes, "{name}: not as it was\n{}", String::from_utf8_lossy(&back));
        fs::remove_file(&path).unwrap();
        tried += 1;
    }
    println!("{tried} files of {}", samples.len());
    assert!(tried >= 150, "{tried}");
    // Nothing of ours is left beside them, and no copy of what was in them.
    assert_eq!(fs::read_dir(home.at(".local/share/mcp/wire/originals")).unwrap().count(), 0);
}

/// What others changed meanwhile stays, and what was ours goes.
#[test]
fn back_by_structure_where_the_file_has_changed() {
    let home = Home::new();
    let samples = samples::all(home.path().to_str().unwrap());
    let mut tried = 0;
    for sample in &samples {
        let Some(path) = home.file_of(sample.client) else {
            continue;
        };
        let name = shown(sample);
        let text = String::from_utf8(sample.bytes.clone()).unwrap();
        // A comment before the first line is a change that every format takes.
        let body = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let mark = &text[..text.len() - body.len()];
        let line = match sample.client.format {
            mcp_clients::Format::Toml | mcp_clients::Format::Yaml => "# changed by hand\n",
            _ => "// changed by hand\n",
        };
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &sample.bytes).unwrap();
        let id = sample.client.id.as_str();
        home.mcp(&["wire", "--yes", "--client", id]).good();
        let wired = fs::read_to_string(&path).unwrap();
        let wired = wired.strip_prefix('\u{feff}').unwrap_or(&wired);
        fs::write(&path, format!("{mark}{line}{wired}")).unwrap();
        home.mcp(&["unwire", "--client", id]).good();
        let back = fs::read_to_string(&path).unwrap();
        assert_eq!(back, format!("{mark}{line}{body}"), "{name}");
        fs::remove_file(&path).unwrap();
        tried += 1;
    }
    assert!(tried >= 150, "{tried}");
}
