//! `mcp log`: what was run, and how it ended.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::args::learn::Result as Wanted;
use crate::args::package::Log;
use crate::audit::{Entry, Event, names, reader};
use crate::commands::learn::from_log;
use crate::failure::Failure;
use crate::paths;
use crate::render::{self, Paint};

const LAST: usize = 50;

pub fn run(args: &Log) -> Result<u8, Failure> {
    let path = paths::audit_log().ok_or_else(|| {
        Failure::Usage("there is no audit log: set HOME or XDG_STATE_HOME".to_owned())
    })?;
    let since = args.since.map(|age| now() - age.as_std().as_secs_f64());
    let is_wanted = |(_, entry): &(String, Entry)| {
        since.is_none_or(|since| entry.time >= since)
            && (!args.failed || has_failed(&entry.event))
            && args.word.as_ref().is_none_or(|word| names(entry, word))
    };
    // Before the rest is read: nothing falls between the two.
    let mut tail = args.follow.then(|| reader::Tail::new(&path));
    let read = reader::all(&path);
    tell_torn(read.torn);
    let mut found: Vec<_> = runs(read.entries).into_iter().filter(is_wanted).collect();
    if args.suggest {
        let entries = found.iter().map(|(_, entry)| entry);
        return from_log::suggest(entries, &Wanted::default(), args.json);
    }
    if found.is_empty() && !args.follow && !args.json {
        let filters = [args.word.is_some(), args.failed, args.since.is_some()];
        render::say(match filters.contains(&true) {
            true => "no run in the log fits; mcp log alone shows the last ones",
            false => "there is no run in the log",
        });
    }
    let surplus = found.len().saturating_sub(args.last.unwrap_or(LAST));
    found.drain(..surplus);
    for one in &found {
        show(one, args);
    }
    let Some(tail) = &mut tail else {
        return Ok(0);
    };
    loop {
        std::thread::sleep(Duration::from_millis(250));
        let news = tail.news();
        tell_torn(news.torn);
        for one in news.entries.iter().filter(|one| is_wanted(one)) {
            show(one, args);
        }
    }
}

/// Each run once, by its end; by its start where it has none: it runs, or something ended it without a word.
fn runs(entries: Vec<(String, Entry)>) -> Vec<(String, Entry)> {
    let mut open: BTreeMap<u32, usize> = BTreeMap::new();
    let mut keep = vec![true; entries.len()];
    for (at, (_, entry)) in entries.iter().enumerate() {
        if entry.event == Event::Start {
            open.insert(entry.pid, at);
        } else if let Some(started) = open.remove(&entry.pid) {
            keep[started] = false;
        }
    }
    let mut keep = keep.into_iter();
    entries.into_iter().filter(|_| keep.next().unwrap_or(true)).collect()
}

fn tell_torn(count: usize) {
    let lines = if count == 1 { "line is" } else { "lines are" };
    if count > 0 {
        render::say(&format!(
            "{count} {lines} not whole (something ended while writing), and left out"
        ));
    }
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

fn has_failed(event: &Event) -> bool {
    match event {
        Event::Start => false,
        Event::End { exit_code, .. } => *exit_code != 0,
        Event::Refused { .. } => true,
    }
}

fn show((line, entry): &(String, Entry), args: &Log) {
    if args.json {
        render::print(&(mcp_policy::text::serialized(line) + "\n"));
        return;
    }
    let paint = Paint::stdout();
    let name = entry.what.reference.as_deref().unwrap_or(&entry.what.program);
    let name = [entry.what.verb.as_str(), name, entry.what.script.as_str()].join(" ");
    let what = match &entry.event {
        Event::Start => "started".to_owned(),
        Event::End { exit_code, how, usage, blocked, rules, hints, .. } => {
            let text = format!(
                "{} {exit_code} after {:.1} s, {:.1} s of processor",
                render::plain(how),
                usage.wall_seconds,
                usage.cpu_seconds
            );
            let text = if *exit_code == 0 { paint.good(&text) } else { paint.warn(&text) };
            text + &told(", guard: ", rules)
                + &told(", blocked: ", &counted(blocked))
                + &told(", told: ", &hints.iter().map(|kind| hint(kind)).collect::<Vec<_>>())
        }
        Event::Refused { exit_code, why, rules } => {
            let text = format!("not started ({}, {exit_code})", reason(why));
            paint.bad(&text) + &told(", rule: ", rules)
        }
    };
    let name = render::plain(name.trim());
    render::print(&format!("{}  {:>7}  {name}  {what}\n", utc(entry.time), entry.pid));
}

/// What kept a run from starting, by the word in the log.
fn reason(word: &str) -> String {
    let sentence = match word {
        "policy" => "the policy is not valid",
        "grant" => "a granted path cannot be given",
        "not_found" => "there is no such program",
        "not_executable" => "the program cannot be executed",
        "descriptor" => "a standard descriptor is a way out",
        "setup" => "the system refused a step of the set-up",
        "changed" => "the package was changed",
        "not_enforced" => "a boundary cannot be enforced here",
        "guard" => "refused by the guard",
        "package" => "the package cannot be used",
        "input" => "a file that was named cannot be read",
        "file" => "a file of mcp cannot be used",
        "usage" => "the command line is not valid",
        other => return render::plain(other),
    };
    sentence.to_owned()
}

/// What a hint was about, by the word in the log.
fn hint(word: &str) -> String {
    let sentence = match word {
        "arguments" => "a path or flag that the command does not have",
        "directory" => "it started in an empty HOME",
        "limits" => "a limit",
        "loopback" => "a service of this machine",
        "read-only" => "it could read and not write",
        "refused" => "what the system refused",
        "variables" => "a variable that was not passed on",
        other => return render::plain(other),
    };
    sentence.to_owned()
}

/// Where there is something to be told: the first few, and how many more there are.
fn told(title: &str, words: &[String]) -> String {
    const MOST: usize = 4;
    if words.is_empty() {
        return String::new();
    }
    let shown: Vec<String> = words.iter().take(MOST).map(|word| render::plain(word)).collect();
    let more = match words.len().checked_sub(MOST) {
        Some(more @ 1..) => format!(" and {more} more"),
        _ => String::new(),
    };
    format!("{title}{}{more}", shown.join(", "))
}

/// What was refused, and how often where that was more than once.
fn counted(blocked: &BTreeMap<String, u64>) -> Vec<String> {
    let one = |(to, times): (&String, &u64)| match times {
        1 => to.clone(),
        times => format!("{to} ({times} times)"),
    };
    blocked.iter().map(one).collect()
}

/// `2026-11-16 00:13:27Z`, from the days since 1970 (the civil calendar, without leap seconds).
fn utc(time: f64) -> String {
    let seconds = time.max(0.0) as u64;
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_part = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_part + 2) / 5 + 1;
    let month = if month_part < 10 { month_part + 3 } else { month_part - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hours, minutes, seconds) = (rest / 3_600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02} {hours:02}:{minutes:02}:{seconds:02}Z")
}

#[cfg(test)]
mod tests {
    use super::utc;

    #[test]
    fn dates_are_dates() {
        assert_eq!(utc(0.0), "1970-01-01 00:00:00Z");
        assert_eq!(utc(951_827_696.0), "2000-02-29 12:34:56Z");
        assert_eq!(utc(1_794_787_200.0), "2026-11-16 00:00:00Z");
    }
}
