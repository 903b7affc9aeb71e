//! Batch files that start themselves, over and over.

/// `%0|%0`, `start %0`, or `start` between a label and the jump back to it; also where that is only written to a file.
pub fn starts_itself(text: &str) -> bool {
    let text = text.to_lowercase();
    let plain: String =
        text.chars().filter(|c| !matches!(c, ' ' | '^' | '"' | '\'' | '`')).collect();
    let plain = OWN_NAME.iter().fold(plain, |plain, own| plain.replace(own, "%0"));
    TWICE.iter().any(|twice| plain.contains(twice)) || jumps_back(&text)
}

/// Ways in which a batch file names itself; in a file, percent signs are doubled.
const OWN_NAME: &[&str] = &["%%0", "%~f0", "%~0", "%~dpnx0", "%~nx0", "%~s0"];

const TWICE: &[&str] = &["%0|%0", "%0&%0", "start%0", "start/b%0", "start/min%0", "startcmd/c%0"];

fn jumps_back(text: &str) -> bool {
    let Some((before, after)) = text.split_once("goto ") else {
        return false;
    };
    let label: String =
        after.trim_start_matches(':').chars().take_while(|c| c.is_alphanumeric()).collect();
    let start = before.find(&format!(":{label}")).filter(|_| !label.is_empty());
    start.is_some_and(|at| before[at..].contains("start "))
}

#[cfg(test)]
mod tests {
    use super::starts_itself;

    #[test]
    fn files_that_start_themselves() {
        for text in [
            "%0|%0",
            "echo %0^|%0 > b.bat & b.bat",
            "echo start \"\" \"%~f0\" > b.bat",
            "(echo :a & echo start cmd & echo goto a) > b.bat",
            "'%0|%0' | Set-Content b.bat",
        ] {
            assert!(starts_itself(text), "{text}");
        }
        for text in ["echo %0", "npm start", "if exist x goto end", ":end & echo done", "start %1"]
        {
            assert!(!starts_itself(text), "{text}");
        }
    }
}
