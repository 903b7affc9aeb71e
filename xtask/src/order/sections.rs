//! Where the linker put what: the map of LLD.
//!
//! ```text
//!   VMA     LMA  Size Align Out     In      Symbol
//! 17d0e9  17d0e9  129     1         FILE:(.text.NAME)
//! ```

/// Sections of code by their addresses.
pub struct Sections(Vec<Section>);

struct Section {
    start: u64,
    size: u64,
    pattern: String,
}

impl Sections {
    pub fn parse(map: &str) -> Sections {
        let mut sections: Vec<Section> = map.lines().filter_map(section).collect();
        sections.sort_by_key(|section| section.start);
        Sections(sections)
    }

    /// For a linker script: matches the section that holds this address, in other builds too.
    pub fn pattern_at(&self, address: u64) -> Option<String> {
        let after = self.0.partition_point(|section| section.start <= address);
        let section = self.0.get(after.checked_sub(1)?)?;
        (address - section.start < section.size).then(|| section.pattern.clone())
    }
}

fn section(line: &str) -> Option<Section> {
    let mut words = line.split_ascii_whitespace();
    let mut number = || u64::from_str_radix(words.next()?, 16).ok();
    let (start, _, size) = (number()?, number()?, number()?);
    let (file, name) = words.nth(1)?.strip_suffix(')')?.rsplit_once(":(")?;
    (size > 0 && name.starts_with(".text")).then(|| Section {
        start,
        size,
        pattern: pattern(file, name),
    })
}

fn pattern(file: &str, name: &str) -> String {
    // The code of C has no section for each function, but a file.
    let file = file.rsplit_once('/').map_or(file, |(_, file)| file);
    let file = match file.split_once('(') {
        _ if name.contains("._") => "*".to_owned(),
        Some((archive, member)) => format!("*{archive}:{}", member.trim_end_matches(')')),
        None => format!("*{file}"),
    };
    format!("{file}({})", without_hashes(name))
}

/// Of `_ZN…17h0123456789abcdefE` and of `_RNv…Cs0aB1_3std…`, whatever another build has another of.
/// Characters that mean something in a script match any.
fn without_hashes(name: &str) -> String {
    let name = match (name.rfind("17h"), name.split_once(".llvm.")) {
        (Some(at), _) if name.contains("._ZN") => format!("{}17h*", &name[..at]),
        (_, Some((stem, _))) => format!("{stem}*"),
        _ => name.to_owned(),
    };
    let mut parts = name.split("Cs");
    let first = parts.next().unwrap_or_default().to_owned();
    let joined = parts.fold(first, |so_far, part| match part.split_once('_') {
        Some((hash, rest))
            if name.contains("._R") && hash.bytes().all(|b| b.is_ascii_alphanumeric()) =>
        {
            format!("{so_far}Cs*_{rest}")
        }
        _ => format!("{so_far}Cs{part}"),
    });
    joined.replace(['$', '('], "?")
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAP: &str = "             VMA              LMA     Size Align Out     In      Symbol
          17d000           17d000     1000    64 .text
          17d000           17d000      129     1         /t/mcp-1.rcgu.o:(.text._ZN3mcp3run17hfb6a51d4da807976E)
          17d000           17d000      129     1                 _ZN3mcp3run17hfb6a51d4da807976E
          17d129           17d129       20     1         /t/mcp-1.rcgu.o:(.text._RNvNtCsjrHSEGnQ3l9_4core3fmt5write)
          17d200           17d200       10    16         /usr/lib/libc.a(malloc.o):(.text)
          17d210           17d210       10    16         /usr/lib/crt1.o:(.text)
          17d300           17d300       10    16         /usr/lib/libc.a(malloc.o):(.rodata)
";

    #[test]
    fn a_section_is_found_by_an_address_in_it_and_named_for_every_build() {
        let sections = Sections::parse(MAP);
        for (address, pattern) in [
            (0x17d000, Some("*(.text._ZN3mcp3run17h*)")),
            (0x17d128, Some("*(.text._ZN3mcp3run17h*)")),
            (0x17d129, Some("*(.text._RNvNtCs*_4core3fmt5write)")),
            (0x17d20f, Some("*libc.a:malloc.o(.text)")),
            (0x17d210, Some("*crt1.o(.text)")),
            (0x17d220, None),
            (0x17d300, None),
            (0, None),
        ] {
            assert_eq!(sections.pattern_at(address).as_deref(), pattern, "{address:x}");
        }
    }

    #[test]
    fn generic_names_have_no_character_of_a_script() {
        assert_eq!(
            without_hashes(".text._ZN5alloc3vec16Vec$LT$T$GT$4push17h0123456789abcdefE.llvm.1"),
            ".text._ZN5alloc3vec16Vec?LT?T?GT?4push17h*"
        );
    }
}
