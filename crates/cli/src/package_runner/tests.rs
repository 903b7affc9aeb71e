use super::*;

/// Lines as they stand in READMEs of servers and in clients' configurations, and what each becomes:
/// `reference [program=…] [with=…] | arguments`, `program: words [in DIR]`, or `as it stands`.
const LINES: &[(&str, &str)] = &[
    (
        "npx -y @modelcontextprotocol/server-everything",
        "npm:@modelcontextprotocol/server-everything |",
    ),
    (
        "npx -y @modelcontextprotocol/server-filesystem /home/me/notes /tmp/x",
        "npm:@modelcontextprotocol/server-filesystem | /home/me/notes /tmp/x",
    ),
    ("npx -y @modelcontextprotocol/server-memory", "npm:@modelcontextprotocol/server-memory |"),
    ("npx -y @modelcontextprotocol/server-github", "npm:@modelcontextprotocol/server-github |"),
    (
        "npx -y @modelcontextprotocol/server-postgres postgresql://localhost/mydb",
        "npm:@modelcontextprotocol/server-postgres | postgresql://localhost/mydb",
    ),
    ("npx @playwright/mcp@latest", "npm:@playwright/mcp@latest |"),
    (
        "npx @playwright/mcp@latest --headless --browser chromium",
        "npm:@playwright/mcp@latest | --headless --browser chromium",
    ),
    ("npx -y @upstash/context7-mcp@1.0.14", "npm:@upstash/context7-mcp@1.0.14 |"),
    ("npx -y @upstash/context7-mcp --api-key KEY", "npm:@upstash/context7-mcp | --api-key KEY"),
    ("npx --yes firecrawl-mcp", "npm:firecrawl-mcp |"),
    ("npx -y tavily-mcp@0.1.3", "npm:tavily-mcp@0.1.3 |"),
    ("npx -y @notionhq/notion-mcp-server", "npm:@notionhq/notion-mcp-server |"),
    ("npx -y chrome-devtools-mcp@latest --isolated", "npm:chrome-devtools-mcp@latest | --isolated"),
    ("npx -y mcp-remote https://example.com/sse", "npm:mcp-remote | https://example.com/sse"),
    ("npx -y supergateway --stdio 'uvx x'", "npm:supergateway | --stdio 'uvx x'"),
    ("npx -y --package=@angular/cli ng mcp", "npm:@angular/cli program=ng | mcp"),
    ("npx -p @angular/cli@20 ng mcp", "npm:@angular/cli@20 program=ng | mcp"),
    ("npx -y -p @scope/name name --flag", "npm:@scope/name | --flag"),
    (
        "npx -y -p typescript -p ts-server ts-server",
        "npm:typescript program=ts-server with=npm:ts-server |",
    ),
    ("npx -q -y task-master-ai", "npm:task-master-ai |"),
    ("npx --prefer-offline -y @kazuph/mcp-fetch", "npm:@kazuph/mcp-fetch |"),
    ("npx --loglevel error -y firecrawl-mcp", "npm:firecrawl-mcp |"),
    ("npx -- @scope/server --port 3", "npm:@scope/server | --port 3"),
    ("npx some-server@^2.0.0", "npm:some-server@^2.0.0 |"),
    ("npx.cmd -y some-server", "npm:some-server |"),
    ("/usr/local/bin/npx -y some-server", "npm:some-server |"),
    (
        "cmd /c npx -y @modelcontextprotocol/server-memory",
        "npm:@modelcontextprotocol/server-memory |",
    ),
    ("cmd /C npx -y some-server C:\\data", "npm:some-server | C:\\data"),
    ("cmd.exe /c uvx mcp-server-time", "pypi:mcp-server-time |"),
    (
        "npm exec -y @modelcontextprotocol/server-memory",
        "npm:@modelcontextprotocol/server-memory |",
    ),
    ("npm exec --yes -- some-server --port 3", "npm:some-server | --port 3"),
    ("npm exec --package=@scope/tool -- run-tool a", "npm:@scope/tool program=run-tool | a"),
    ("npm x -y some-server", "npm:some-server |"),
    ("bunx some-server", "npm:some-server |"),
    ("bunx --bun @scope/server start", "npm:@scope/server | start"),
    ("bunx -y @upstash/context7-mcp", "npm:@upstash/context7-mcp |"),
    ("bun x some-server", "npm:some-server |"),
    ("pnpm dlx some-server --stdio", "npm:some-server | --stdio"),
    ("pnpm dlx --package=@scope/a b", "npm:@scope/a program=b |"),
    ("pnpx some-server", "npm:some-server |"),
    ("yarn dlx some-server", "npm:some-server |"),
    ("yarn dlx -q @scope/server", "npm:@scope/server |"),
    ("uvx mcp-server-git", "pypi:mcp-server-git |"),
    (
        "uvx mcp-server-git --repository /home/me/repo",
        "pypi:mcp-server-git | --repository /home/me/repo",
    ),
    ("uvx mcp-server-sqlite --db-path ./test.db", "pypi:mcp-server-sqlite | --db-path ./test.db"),
    ("uvx mcp-server-fetch@2025.4.7", "pypi:mcp-server-fetch@2025.4.7 |"),
    ("uvx mcp-server-time==2025.7.1", "pypi:mcp-server-time@2025.7.1 |"),
    (
        "uvx mcp-server-time@latest --local-timezone Asia/Tokyo",
        "pypi:mcp-server-time@latest | --local-timezone Asia/Tokyo",
    ),
    ("uvx --from mcp-server-time mcp-server-time", "pypi:mcp-server-time |"),
    (
        "uvx --from awslabs.core-mcp-server@latest awslabs.core-mcp-server",
        "pypi:awslabs.core-mcp-server@latest |",
    ),
    (
        "uvx awslabs.aws-documentation-mcp-server@latest",
        "pypi:awslabs.aws-documentation-mcp-server@latest |",
    ),
    (
        "uvx --from serena-agent serena start-mcp-server",
        "pypi:serena-agent program=serena | start-mcp-server",
    ),
    (
        "uvx --from=serena-agent serena start-mcp-server",
        "pypi:serena-agent program=serena | start-mcp-server",
    ),
    ("uvx --python 3.12 duckduckgo-mcp-server", "pypi:duckduckgo-mcp-server |"),
    ("uvx --python=3.12 --from a-b a_b", "pypi:a-b |"),
    ("uvx --with 'mcp<2' mcp-server-sqlite", "pypi:mcp-server-sqlite,mcp<2 |"),
    ("uvx --with requests mcp-server-x", "pypi:mcp-server-x,requests |"),
    ("uvx --with 'mcp >= 1, < 2' --with b mcp-server-x", "pypi:mcp-server-x,mcp>=1,<2,b |"),
    ("uvx --with 'a b' mcp-server-x", "as it stands"),
    ("uvx --with ./local mcp-server-x", "as it stands"),
    ("uvx --with git+https://x/y mcp-server-x", "as it stands"),
    ("uvx --from 'x[cli,all]==1.2' --with y x run", "pypi:x[cli,all]@1.2,y | run"),
    ("uvx --from 'fastmcp[all]' fastmcp run x.py", "pypi:fastmcp[all] | run x.py"),
    ("uvx --refresh --quiet mcp-server-git", "pypi:mcp-server-git |"),
    ("uvx --from git+https://github.com/oraios/serena serena", "as it stands"),
    ("uvx --index-url https://x some", "as it stands"),
    ("uv tool run mcp-server-git", "pypi:mcp-server-git |"),
    ("uv tool run --from mcp-x x", "pypi:mcp-x program=x |"),
    ("pipx run mcp-server-git --repository .", "pypi:mcp-server-git | --repository ."),
    ("pipx run --spec mcp-x==1.0 x", "pypi:mcp-x@1.0 program=x |"),
    (
        "uv --directory /srv/weather run weather.py",
        "program: /srv/weather/.venv/bin/python /srv/weather/weather.py in /srv/weather",
    ),
    ("uv run --directory /srv/w server", "program: /srv/w/.venv/bin/server in /srv/w"),
    ("uv run server.py --port 3", "program: .venv/bin/python server.py --port 3 in ."),
    ("uv run -m my_server", "program: .venv/bin/python -m my_server in ."),
    ("uv run --project /srv/p python -m x", "program: /srv/p/.venv/bin/python -m x in /srv/p"),
    ("uv run --frozen --no-dev my-server", "program: .venv/bin/my-server in ."),
    ("uv run --with mcp mcp run server.py", "as it stands"),
    ("uv sync", "as it stands"),
    ("uv --version", "as it stands"),
    ("docker run -i --rm mcp/server", "as it stands"),
    ("npx github:user/repository", "as it stands"),
    ("npx user/repository", "as it stands"),
    ("npx ./local-server", "as it stands"),
    ("npx -c 'some-server'", "as it stands"),
    ("npx --registry https://x some-server", "as it stands"),
    ("npx", "as it stands"),
    ("npx -y", "as it stands"),
    ("npm run start", "as it stands"),
    ("node server.js", "as it stands"),
    ("python -m my_server", "as it stands"),
    ("env npx -y some-server", "npm:some-server |"),
    ("env TOKEN=x npx -y some-server", "as it stands"),
];

fn shown(words: &[OsString]) -> String {
    let words: Vec<_> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    words.join(" ")
}

fn meaning(words: &[OsString]) -> String {
    match understand(words) {
        Meaning::Package(line) => {
            let program =
                line.program.map(|program| format!(" program={program}")).unwrap_or_default();
            let with: String = line.with.iter().map(|with| format!(" with={with}")).collect();
            format!("{}{program}{with} | {}", line.reference, shown(&line.arguments))
                .trim_end()
                .to_owned()
        }
        Meaning::Program { words, directory } => {
            let directory = directory.map(|d| format!(" in {}", d.display())).unwrap_or_default();
            format!("program: {}{directory}", shown(&words))
        }
        Meaning::AsIs { .. } => "as it stands".to_owned(),
    }
}

/// Blanks separate words; single quotes keep some together.
fn split(line: &str) -> Vec<OsString> {
    let mut words = Vec::new();
    for (at, part) in line.split('\'').enumerate() {
        match at % 2 {
            1 => words.push(part.to_owned()),
            _ => words.extend(part.split_whitespace().map(str::to_owned)),
        }
    }
    words.into_iter().map(OsString::from).collect()
}

#[test]
fn lines_that_people_have() {
    let mut wrong = Vec::new();
    for (line, expected) in LINES {
        // Written with the paths of Unix.
        if cfg!(windows) && expected.starts_with("program:") {
            continue;
        }
        let got = meaning(&split(line));
        if got != expected.replace('\'', "") {
            wrong.push(format!("{line}\n    expected {expected}\n    got      {got}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(LINES.len() >= 60);
}

#[test]
fn what_is_not_understood_is_told_where_it_matters() {
    let note = |line: &str| match understand(&split(line)) {
        Meaning::AsIs { note } => note,
        other => panic!("{other:?}"),
    };
    for line in
        ["npx -c x", "npx --registry https://x y", "uvx --index-url https://x y", "docker run x"]
    {
        assert!(note(line).is_some(), "{line}");
    }
    for line in ["node server.js", "npm run start", "uv sync", "npx"] {
        assert_eq!(note(line), None, "{line}");
    }
}

/// A text of plain words for a shell is the words; one that needs the shell is not guessed at.
#[test]
fn a_runner_in_a_text_for_a_shell() {
    let words = |shell: &str, text: &str| [shell.into(), "-c".into(), text.into()];
    for text in ["npx -y some-server /srv/notes", "exec npx -y some-server  /srv/notes"] {
        let Meaning::Package(line) = understand(&words("sh", text)) else {
            panic!("{text}");
        };
        assert_eq!((line.reference.as_str(), line.arguments.len()), ("npm:some-server", 1));
    }
    for text in ["cd /srv && npx -y some-server", "TOKEN=$TOKEN uvx x"] {
        let Meaning::AsIs { note: Some(note) } = understand(&words("bash", text)) else {
            panic!("{text}");
        };
        assert!(note.contains("cannot install anything"), "{note}");
    }
    for text in ["echo hello", "node server.js | tee x", "npm start"] {
        assert_eq!(understand(&words("sh", text)), Meaning::as_is(), "{text}");
    }
}

/// No reference begins with a dash or holds a blank, whatever the line says.
#[test]
fn no_line_makes_an_option_of_a_package() {
    for line in [
        "npx -p --evil x",
        "npx -- --evil",
        "uvx --from -x y",
        "uvx -- -x",
        "npx -p 'a b' c",
        "uvx 'a b'",
    ] {
        let Meaning::Package(package) = understand(&split(line)) else {
            continue;
        };
        let name = package.reference.split_once(':').unwrap().1;
        assert!(!name.starts_with('-') && !name.contains(' '), "{line}: {package:?}");
    }
}
