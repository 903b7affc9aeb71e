//! `mcp doctor --clean`: removes what runs left on purpose for the next ones.

use mcp_sandbox::platform::{self, Removed};

use crate::failure::Failure;
use crate::render::{self, to_json};

pub fn run(json: bool) -> Result<u8, Failure> {
    let removed = platform::remove_lasting();
    match json {
        true => render::print(&(to_json(&removed) + "\n")),
        false => render::print(&text(&removed)),
    }
    Ok(if removed.left.is_empty() && removed.in_use == 0 { 0 } else { 1 })
}

fn text(removed: &Removed) -> String {
    let mut text = match (removed.directories, removed.in_use + removed.left.len()) {
        (0, 0) if cfg!(windows) => "No directory has entries of mcp's.\n".to_owned(),
        (0, 0) => {
            "Nothing to remove: on this system a run leaves nothing for the next one.\n".to_owned()
        }
        (count, _) => format!("Removed mcp's entries from {}.\n", counted(count)),
    };
    if removed.in_use > 0 {
        let count = counted(removed.in_use);
        text += &format!(
            "A running sandbox uses {count}: run this again when it has ended (mcp ps).\n"
        );
    }
    for (path, why) in &removed.left {
        let path = render::plain(&path.display().to_string());
        text += &format!(
            "{path} still has entries ({why}); they allow nothing but a run of mcp's to read it.\n"
        );
    }
    text
}

fn counted(count: usize) -> String {
    if count == 1 { "1 directory".to_owned() } else { format!("{count} directories") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_told_with_what_to_do() {
        let mut removed = Removed::default();
        assert!(!text(&removed).contains("Removed"));
        removed.directories = 3;
        assert_eq!(text(&removed), "Removed mcp's entries from 3 directories.\n");
        removed.in_use = 1;
        removed.left = vec![("C:/tools".into(), "denied".to_owned())];
        let text = text(&removed);
        assert!(
            text.contains("uses 1 directory: run this again")
                && text.contains("C:/tools still has")
        );
    }
}
