use mcp_policy::{Defaults, Layer};

use super::*;
use crate::core::run_spec::{Identity, RunSpec};
use crate::windows::explain_offline;

struct Project(PathBuf);

impl Project {
    fn new(name: &str, files: &[(&str, &str)]) -> Project {
        let at = std::env::temp_dir().join(format!("mcp-protect-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&at);
        fs::create_dir_all(&at).unwrap();
        let project = Project(real(&at).unwrap());
        files.iter().for_each(|(file, text)| project.file(file, text));
        project
    }

    fn file(&self, file: &str, text: &str) {
        let path = self.0.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn place(&self) -> Place {
        Place { path: self.0.clone(), kind: PlaceKind::Directory }
    }

    fn below(&self, path: &Path) -> String {
        path.strip_prefix(&self.0).unwrap().to_str().unwrap().replace('\\', "/")
    }

    fn protected(&self, allowed: &[&str]) -> Vec<String> {
        let allowed: Vec<PathBuf> = allowed.iter().map(|path| self.0.join(path)).collect();
        let found = Search::run(&[self.place()], &allowed, Believe::All).protected();
        let told = |place: &Protected| format!("{:?} {}", place.guarded, self.below(&place.path));
        found.iter().map(told).collect()
    }

    fn request(&self) -> Request {
        let mut layer = Layer::command_line(self.0.clone(), None);
        layer.write(&self.0);
        let policy = Policy::merge(&[layer.build().unwrap()], Defaults::exec()).unwrap();
        let mut request = explain_offline::request(RunSpec {
            policy,
            command: vec!["cmd".into()],
            cwd: None,
            home: None,
            programs: Vec::new(),
            identity: Identity::None,
        })
        .unwrap();
        request.write = vec![self.place()];
        request.protected = find(&request.policy, &request.write, &[]).unwrap();
        request
    }
}

impl Drop for Project {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const GIT: [(&str, &str); 4] = [
    (".git/HEAD", "ref: refs/heads/main"),
    (".git/config", "[core]\n\tbare = false\n"),
    (".git/hooks/pre-commit", "x"),
    (".git/objects/aa/bb", "x"),
];

#[test]
fn settings_of_the_project_and_its_repositories() {
    let project = Project::new("list", &GIT);
    project.file(".VSCode/tasks.json", "{}");
    project.file("sub/.vscode/tasks.json", "{}");
    project.file("node_modules/x/.vscode/tasks.json", "{}");
    project.file("nested/.git/HEAD", "x");
    project.file("nested/.mcp.json", "{}");
    project.file("bare/HEAD", "x");
    project.file("bare/objects/x", "x");
    project.file("bare/refs/x", "x");
    project.file("bare/config", "x");
    let mut found = project.protected(&[]);
    found.sort();
    let expected = [
        "InPlace .git",
        "InPlace nested/.git",
        "ReadOnly .VSCode",
        "ReadOnly .git/config",
        "ReadOnly .git/hooks",
        "ReadOnly bare/config",
        "ReadOnly nested/.mcp.json",
        "ReadOnly sub/.vscode",
    ];
    assert_eq!(found, expected);
    let allowed = project.protected(&[".git/config", "nested"]);
    assert!(!allowed.iter().any(|told| told.ends_with(".git/config") || told.contains("nested")));
}

#[test]
fn what_git_is_told_to_run_is_protected_where_it_is() {
    let project = Project::new("leads", &GIT);
    project.file(".git/config", "[core]\n\thooksPath = .husky\n");
    project.file(".husky/pre-commit", "x");
    assert!(project.protected(&[]).contains(&"ReadOnly .husky".to_owned()));
}

#[test]
fn what_is_new_is_removed_and_what_was_there_stays() {
    let project = Project::new("undo", &GIT);
    let request = project.request();
    project.file(".vscode/tasks.json", "evil");
    project.file("made/.git/HEAD", "x");
    project.file("made/.git/config", "[core]\n\tfsmonitor = evil\n");
    project.file("made/.git/hooks/x.sample", "x");
    project.file("other/.git/config", "[core]\n\tbare = false\n");
    project.file("plain", "x");
    let undone = undo(&request).told();
    assert!(undone.iter().all(|undone| undone.failed.is_none()), "{undone:?}");
    let mut gone: Vec<String> =
        undone.iter().map(|undone| project.below(Path::new(&undone.path))).collect();
    gone.sort();
    assert_eq!(gone, [".vscode", "made/.git/config"]);
    for left in [".git/hooks/pre-commit", ".git/config", "other/.git/config", "plain"] {
        assert!(project.0.join(left).exists(), "{left}");
    }
    assert!(!project.0.join(".vscode").exists());
    assert!(undo(&request).told().is_empty());
}

#[test]
fn an_exception_inside_something_protected_is_an_error() {
    let project = Project::new("exception", &GIT);
    let allowed = [project.0.join(".git/hooks/pre-commit")];
    let policy = project.request().policy;
    let error = find(&policy, &[project.place()], &allowed).unwrap_err().to_string();
    assert!(error.contains("hooks"), "{error}");
}

/// A place that cannot be searched would be writable whole, with all that is protected in it.
#[test]
fn a_place_that_cannot_be_searched_stops_the_run() {
    let project = Project::new("unread", &[("plain", "")]);
    let policy = project.request().policy;
    let unread = Place { path: project.0.join("plain"), kind: PlaceKind::Directory };
    let error = find(&policy, &[unread], &[]).unwrap_err().to_string();
    assert!(error.contains("plain for what is protected"), "{error}");
    assert!(find(&policy, &[project.place()], &[]).unwrap().is_empty());
}
