//! Texts that start themselves or others over and over: batch files, functions of PowerShell, long loops.

use super::aliases::canonical;
use super::tokens::Token;
use crate::value::Output;

/// Steps from which on a loop that starts programs leaves room for nothing else.
const MANY: u64 = 1000;

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

/// `function b { Start-Job { b }; b }`: it calls itself, and starts something each time.
pub fn defines_bomb(keyword: &str, rest: &[Token]) -> bool {
    let (true, [Token::Word(name, _), rest @ ..]) = (keyword == "function", rest) else {
        return false;
    };
    let name = name.without_unknown().to_lowercase();
    let body = rest.iter().find_map(|token| match token {
        Token::Block('{', body, _) => Some(body),
        _ => None,
    });
    body.is_some_and(|body| any_word(body, &|word| word == name) && starts_programs(body))
}

/// Whether a block starts programs and does not wait for them.
pub fn starts_programs(body: &[Token]) -> bool {
    let starts =
        |word: &str| matches!(&*canonical(word), "start-process" | "start-job" | "start-threadjob");
    let waits = |word: &str| {
        word.len() > 1 && "-wait".starts_with(word)
            || matches!(&*canonical(word), "start-sleep" | "sleep" | "wait-process" | "wait-job")
    };
    any_word(body, &starts) && !any_word(body, &waits)
}

/// Whether a block ends processes.
pub fn ends_programs(body: &[Token]) -> bool {
    any_word(body, &|word| word == ".kill" || &*canonical(word) == "stop-process")
}

/// What `1..100000` hands on.
pub fn is_long(over: &Output) -> bool {
    over.from.iter().any(|from| is_long_range(from))
}

/// `1..100000`, or the 100000 of `$i -lt 100000`.
pub fn is_many(token: &Token) -> bool {
    matches!(token, Token::Word(value, _) if {
        let text = value.without_unknown();
        is_long_range(&text) || text.parse().is_ok_and(|number: u64| number >= MANY)
    })
}

fn is_long_range(text: &str) -> bool {
    let Some((from, to)) = text.split_once("..") else {
        return false;
    };
    let number = |text: &str| text.parse::<i64>().ok();
    number(from).zip(number(to)).is_some_and(|(from, to)| from.abs_diff(to) >= MANY)
}

fn any_word(tokens: &[Token], is: &dyn Fn(&str) -> bool) -> bool {
    tokens.iter().any(|token| match token {
        Token::Word(value, _) => is(&value.without_unknown().to_lowercase()),
        Token::Block(_, inner, _) => any_word(inner, is),
        _ => false,
    })
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
