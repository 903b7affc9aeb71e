//! Reads the source of one crate: its modules, what they import, and the paths that they name.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemMod, ItemUse, Meta, Token, UseTree, Visibility};

use super::graph::Graph;
use crate::Result;

/// The names from the crate down to a module or an item.
type Names = Vec<String>;

pub struct Crate {
    modules: BTreeSet<Names>,
    /// Those that have a file of their own; the others are a part of theirs.
    files: BTreeSet<Names>,
    /// What a module calls by a name of its own, by its imports.
    imports: BTreeMap<(Names, String), Names>,
    mentions: Vec<Mention>,
}

/// A path that is named somewhere.
struct Mention {
    /// The module that names it.
    by: Names,
    path: Names,
    /// Passed on under another name, and not used.
    passed_on: bool,
    place: String,
}

impl Crate {
    pub fn read(src: &Path) -> Result<Crate> {
        let mut of = Crate {
            modules: BTreeSet::from([Names::new()]),
            files: BTreeSet::new(),
            imports: BTreeMap::new(),
            mentions: Vec::new(),
        };
        let root = ["lib.rs", "main.rs"].map(|name| src.join(name));
        let root = root.into_iter().find(|path| path.exists()).ok_or("no lib.rs and no main.rs")?;
        of.read_file(src, &root, src, &Names::new())?;
        Ok(of)
    }

    /// `below`: where the files of this one's modules are.
    fn read_file(&mut self, src: &Path, file: &Path, below: &Path, module: &Names) -> Result<()> {
        let text = std::fs::read_to_string(file)?;
        self.files.insert(module.clone());
        let parsed =
            syn::parse_file(&text).map_err(|error| format!("{}: {error}", file.display()))?;
        let place = file.strip_prefix(src).unwrap_or(file).display().to_string();
        let mut found = Found { of: self, module: module.clone(), place, children: Vec::new() };
        found.items(&parsed.items);
        for (child, named) in found.children {
            let Some((name, above)) = child[module.len()..].split_last() else { continue };
            let inner = above.iter().fold(below.to_owned(), |at, part| at.join(part));
            let directory = inner.join(name);
            let candidates = match (named, file.parent()) {
                (Some(named), Some(beside)) => vec![beside.join(named)],
                _ => vec![inner.join(format!("{name}.rs")), directory.join("mod.rs")],
            };
            let path = candidates.into_iter().find(|path| path.exists());
            let path = path.ok_or_else(|| format!("{}: no file for mod {name}", file.display()))?;
            self.read_file(src, &path, &directory, &child)?;
        }
        Ok(())
    }

    /// The modules at the top, or those directly below one of them, and who uses whom.
    pub fn graph(&self, level: Option<&str>) -> Graph {
        let depth = usize::from(level.is_some());
        let node = |names: &Names| {
            let is_file = |count: &usize| self.files.contains(&names[..*count]);
            let count = (0..=names.len()).rev().find(is_file)?;
            let names = &names[..count];
            if level.is_some_and(|level| names.first().is_none_or(|first| first != level)) {
                return None;
            }
            Some(names.get(depth).or(names.last()).map_or("lib", String::as_str).to_owned())
        };
        let mut graph = Graph::default();
        for name in self.files.iter().filter(|names| names.len() == depth + 1).filter_map(&node) {
            graph.add_module(&name);
        }
        for mention in &self.mentions {
            let Some(target) = self.module_of(&mention.path, 0) else { continue };
            let is_child = target.len() > mention.by.len() && target.starts_with(&mention.by);
            let (Some(from), Some(to)) = (node(&mention.by), node(&target)) else { continue };
            if from != to && !(mention.passed_on && is_child) {
                graph.add(&from, &to, mention.place.clone());
            }
        }
        graph
    }

    /// The module that has what a path names, through whatever passes it on.
    fn module_of(&self, path: &Names, depth: usize) -> Option<Names> {
        let known = |count: &usize| self.modules.contains(&path[..*count]);
        let count = (0..=path.len()).rev().find(known)?;
        let (module, rest) = path.split_at(count);
        let imported =
            rest.first().and_then(|name| self.imports.get(&(module.to_vec(), name.clone())));
        match imported {
            // Names may be passed on in a circle, by modules and items of the same name.
            Some(target) if depth < 8 && target != path => {
                let further = target.iter().chain(&rest[1..]).cloned().collect();
                self.module_of(&further, depth + 1)
            }
            _ => Some(module.to_vec()),
        }
    }
}

/// What is found in one file.
struct Found<'a> {
    of: &'a mut Crate,
    module: Names,
    place: String,
    /// Modules that have files of their own, and the name of the file where it is said.
    children: Vec<(Names, Option<String>)>,
}

impl Found<'_> {
    fn items(&mut self, items: &[Item]) {
        // First the names, because a path may begin with any of them.
        for item in items {
            if let Item::Mod(ItemMod { ident, attrs, .. }) = item
                && !is_for_tests(attrs)
            {
                self.of.modules.insert(self.child(&ident.to_string()));
            }
        }
        items.iter().for_each(|item| self.visit_item(item));
    }

    fn child(&self, name: &str) -> Names {
        self.module.iter().cloned().chain([name.to_owned()]).collect()
    }

    /// From the crate down. `None` for what is no path of this crate's modules.
    fn absolute(&self, path: &[String]) -> Option<Names> {
        let mut rest = path;
        let mut names = self.module.clone();
        let first = rest.first()?;
        match first.as_str() {
            "crate" => names.clear(),
            "self" => {}
            "super" => return self.above(path),
            name if self.of.modules.contains(&self.child(name)) => {
                names.push(name.to_owned());
            }
            _ => return None,
        }
        rest = &rest[1..];
        names.extend(rest.iter().cloned());
        Some(names)
    }

    fn above(&self, path: &[String]) -> Option<Names> {
        let count = path.iter().take_while(|name| *name == "super").count();
        let keep = self.module.len().checked_sub(count)?;
        Some(self.module[..keep].iter().chain(&path[count..]).cloned().collect())
    }

    fn mention(&mut self, path: &[String], passed_on: bool, line: usize) {
        let Some(path) = self.absolute(path) else { return };
        let place = format!("{}:{line}", self.place);
        self.of.mentions.push(Mention { by: self.module.clone(), path, passed_on, place });
    }

    fn import(&mut self, tree: &UseTree, path: &mut Names, passed_on: bool) {
        match tree {
            UseTree::Path(part) => {
                path.push(part.ident.to_string());
                self.import(&part.tree, path, passed_on);
                path.pop();
            }
            UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.import(tree, path, passed_on));
            }
            UseTree::Name(name) => self.import_one(path, &name.ident, &name.ident, passed_on),
            UseTree::Rename(name) => self.import_one(path, &name.ident, &name.rename, passed_on),
            UseTree::Glob(glob) => {
                let line = glob.star_token.spans[0].start().line;
                self.mention(path, passed_on, line);
            }
        }
    }

    fn import_one(
        &mut self,
        path: &[String],
        name: &syn::Ident,
        known_as: &syn::Ident,
        passed_on: bool,
    ) {
        let is_itself = name == "self";
        let whole: Names = match is_itself {
            true => path.to_vec(),
            false => path.iter().cloned().chain([name.to_string()]).collect(),
        };
        self.mention(&whole, passed_on, name.span().start().line);
        let known_as = match (is_itself && known_as == "self", path.last()) {
            (true, Some(last)) => last.clone(),
            _ => known_as.to_string(),
        };
        if let Some(target) = self.absolute(&whole) {
            self.of.imports.insert((self.module.clone(), known_as), target);
        }
    }

    /// Macros are not parsed: what they are given may name paths all the same.
    fn tokens(&mut self, stream: TokenStream) {
        let mut path: Names = Vec::new();
        let mut line = 0;
        for token in stream {
            match token {
                TokenTree::Ident(ident) if path.last().is_none_or(String::is_empty) => {
                    path.pop();
                    line = ident.span().start().line;
                    path.push(ident.to_string());
                    continue;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' && !path.is_empty() => {
                    if punct.spacing() == proc_macro2::Spacing::Alone {
                        path.push(String::new());
                    }
                    continue;
                }
                TokenTree::Group(group) => self.tokens(group.stream()),
                _ => {}
            }
            self.named_in_macro(&mut path, line);
        }
        self.named_in_macro(&mut path, line);
    }

    fn named_in_macro(&mut self, path: &mut Names, line: usize) {
        path.retain(|name| !name.is_empty());
        if path.len() > 1 {
            self.mention(path, false, line);
        }
        path.clear();
    }
}

impl<'ast> Visit<'ast> for Found<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        if !attributes(item).is_some_and(is_for_tests) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        let module = self.child(&item.ident.to_string());
        let Some((_, items)) = &item.content else {
            self.children.push((module, path_of(&item.attrs)));
            return;
        };
        let outer = std::mem::replace(&mut self.module, module);
        self.items(items);
        self.module = outer;
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        let passed_on = !matches!(item.vis, Visibility::Inherited);
        self.import(&item.tree, &mut Names::new(), passed_on);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Names = path.segments.iter().map(|part| part.ident.to_string()).collect();
        let line = path.segments.first().map_or(0, |part| part.ident.span().start().line);
        if path.leading_colon.is_none() && names.len() > 1 {
            self.mention(&names, false, line);
        }
        visit::visit_path(self, path);
    }

    /// `pub(in path)` and `pub(crate)` use nothing.
    fn visit_visibility(&mut self, _: &'ast Visibility) {}

    fn visit_macro(&mut self, called: &'ast syn::Macro) {
        self.visit_path(&called.path);
        self.tokens(called.tokens.clone());
    }
}

fn attributes(item: &Item) -> Option<&[Attribute]> {
    Some(match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        _ => return None,
    })
}

/// What `#[path = "…"]` says.
fn path_of(attributes: &[Attribute]) -> Option<String> {
    attributes.iter().find_map(|attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
            syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    })
}

/// Whether something is compiled for tests alone.
fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) if list.path.is_ident("cfg") => {
            list.parse_args::<Meta>().is_ok_and(|condition| holds_in_tests_only(&condition))
        }
        _ => false,
    })
}

fn holds_in_tests_only(condition: &Meta) -> bool {
    let parts = |list: &syn::MetaList| {
        type Parts = syn::punctuated::Punctuated<Meta, Token![,]>;
        list.parse_args_with(Parts::parse_terminated).unwrap_or_default()
    };
    match condition {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) if list.path.is_ident("all") => {
            parts(list).iter().any(holds_in_tests_only)
        }
        Meta::List(list) if list.path.is_ident("any") => {
            parts(list).iter().all(holds_in_tests_only)
        }
        _ => false,
    }
}
