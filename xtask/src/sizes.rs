//! `cargo xtask sizes`: no file over 450 lines and no function over 80, so that a reader can hold each in mind.
//!
//! Tables are exceptions, each named below: one row for each item is easier to read in one place.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use syn::visit::{self, Visit};

use crate::Result;

const LONGEST_FILE: usize = 450;
const LONGEST_FUNCTION: usize = 80;

/// Where source is: every crate with its tests, and these chores.
const SOURCES: [&str; 2] = ["crates", "xtask/src"];

/// Functions that are one table, by file and name, with the reason.
const TABLES: [(&str, &str, &str); 1] =
    [("crates/sandbox/src/macos/plan.rs", "wanted", "what is intended, a row for each control")];

/// Fail for a file or function that is too long
#[derive(clap::Args)]
pub struct Args {}

pub fn run(_: &Args) -> Result<ExitCode> {
    let top = crate::workspace();
    let mut files = Vec::new();
    for source in SOURCES {
        collect(&top.join(source), &mut files)?;
    }
    files.sort();
    let mut too_long = Vec::new();
    let mut used = Vec::new();
    for path in files {
        let name = path.strip_prefix(&top).unwrap_or(&path).display().to_string();
        let text = std::fs::read_to_string(&path)?;
        let lines = text.lines().count();
        if lines > LONGEST_FILE {
            too_long.push(format!("{name}: {lines} lines"));
        }
        for Function { name: function, line, lines } in long_functions(&text, &name)? {
            match TABLES.iter().find(|(file, table, _)| *file == name && *table == function) {
                Some(table) => used.push(table),
                None => too_long.push(format!("{name}:{line}: {function} has {lines} lines")),
            }
        }
    }
    for table in TABLES.iter().filter(|table| !used.contains(table)) {
        too_long.push(format!("{}: {} is listed as a table and is not long", table.0, table.1));
    }
    too_long.iter().for_each(|line| eprintln!("{line}"));
    match too_long.len() {
        0 => Ok(ExitCode::SUCCESS),
        count => Err(format!(
            "{count} too long: a file may have {LONGEST_FILE} lines, a function {LONGEST_FUNCTION}"
        )
        .into()),
    }
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let (path, kind) = entry.and_then(|entry| Ok((entry.path(), entry.file_type()?)))?;
        if kind.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

struct Function {
    name: String,
    line: usize,
    lines: usize,
}

fn long_functions(text: &str, place: &str) -> Result<Vec<Function>> {
    let parsed = syn::parse_file(text).map_err(|error| format!("{place}: {error}"))?;
    let mut functions = Functions(Vec::new());
    functions.visit_file(&parsed);
    Ok(functions.0)
}

struct Functions(Vec<Function>);

impl Functions {
    fn add(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let (first, last) =
            (signature.fn_token.span.start().line, block.brace_token.span.close().end().line);
        let lines = last + 1 - first;
        if lines > LONGEST_FUNCTION {
            self.0.push(Function { name: signature.ident.to_string(), line: first, lines });
        }
    }
}

impl<'ast> Visit<'ast> for Functions {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.add(&item.sig, &item.block);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.add(&item.sig, &item.block);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.add(&item.sig, block);
        }
        visit::visit_trait_item_fn(self, item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_of_81_lines_is_too_long_and_one_of_80_is_not() {
        for (lines, is_long) in [(80, false), (81, true)] {
            let text = format!("impl X {{ fn f() {{\n{}}}\n}}", "g();\n".repeat(lines - 2));
            assert_eq!(!long_functions(&text, "x").unwrap().is_empty(), is_long, "{lines}");
        }
    }
}
