//! Draws `docs/img/*.svg` from `bench/data/*.json`, which the benchmarks print with `--json`. From the top of the workspace:
//!
//! ```text
//! cargo run -p bench-plot
//! ```

mod charts;

use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use bench_common::plot;

/// Below the top of the workspace.
const DATA: &str = "bench/data";
const IMAGES: &str = "docs/img";

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    match pictures(&top).and_then(|pictures| write(&top, &pictures)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench-plot: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Names and contents.
fn pictures(top: &Path) -> Result<Vec<(&'static str, String)>> {
    let data = |name: &str| -> Result<serde_json::Value> {
        let path = top.join(DATA).join(name);
        let text =
            fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?)
    };
    let (startup, net) = (data("startup.json")?, data("net.json")?);
    Ok(vec![
        ("startup.svg", plot::svg(&charts::startup(&startup)?)),
        ("memory.svg", plot::svg(&charts::memory(&startup)?)),
        ("connection.svg", plot::svg(&charts::connection(&net)?)),
    ])
}

fn write(top: &Path, pictures: &[(&str, String)]) -> Result<()> {
    let images = top.join(IMAGES);
    fs::create_dir_all(&images)?;
    for (name, picture) in pictures {
        fs::write(images.join(name), picture)?;
        println!("{IMAGES}/{name}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `cargo run -p bench-plot` makes them anew.
    #[test]
    fn pictures_are_those_of_the_data() {
        let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for (name, picture) in pictures(&top).unwrap() {
            let there =
                fs::read_to_string(top.join(IMAGES).join(name)).unwrap().replace("\r\n", "\n");
            assert!(
                there == picture,
                "{IMAGES}/{name} is not drawn from {DATA}: cargo run -p bench-plot"
            );
        }
    }
}
