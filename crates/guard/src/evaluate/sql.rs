//! Statements for databases: what a client is given as text, by an option or on its input.

use super::Evaluator;
use super::call::Call;
use crate::value::Field;

const CLIENTS: &[&str] = &[
    "psql",
    "mysql",
    "mariadb",
    "sqlite3",
    "mongosh",
    "mongo",
    "clickhouse-client",
    "cqlsh",
    "sqlcmd",
    "duckdb",
    "usql",
    "pgcli",
    "mycli",
    "litecli",
    "cockroach",
    "turso",
    "wrangler",
    "snowsql",
    "bq",
    "redis-cli",
    "valkey-cli",
    "sqlplus",
    "isql",
    "cypher-shell",
    "influx",
];

/// What is dropped with all that is in it.
const DROPPED: &[&str] = &[
    "database",
    "schema",
    "table",
    "keyspace",
    "collection",
    "user",
    "role",
    "owned",
    "index",
    "bucket",
    "dataset",
    "warehouse",
];

/// Longer texts are looked at up to here.
const LONGEST: usize = 32 * 1024;

impl Evaluator<'_> {
    pub fn sql(&mut self, name: &str, arguments: &[Field], call: &Call<'_>) {
        if !CLIENTS.contains(&name) {
            return;
        }
        let given = arguments.iter().map(|field| (field.value.without_unknown(), &field.span));
        let input = call.input.and_then(|input| input.text.as_ref());
        let read = input.map(|text| (text.without_unknown(), &call.span));
        let found = given.chain(read).find(|(text, _)| destroys(text));
        if let Some((_, span)) = found {
            let span = call.span.start.min(span.start)..call.span.end.max(span.end);
            self.raise("drop-database", span);
        }
    }
}

/// Whether a statement of the text deletes a database, a table, or every row of one.
fn destroys(text: &str) -> bool {
    let end = (0..=LONGEST.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    let text = text[..end.unwrap_or_default()].to_lowercase();
    let redis = |word: &str| matches!(word, "flushall" | "flushdb");
    if text.split_whitespace().any(redis) {
        return true;
    }
    let mongo = ["dropdatabase(", ".drop()", "deletemany({})", "remove({})", ".dropcollection("];
    mongo.iter().any(|call| text.contains(call)) || text.split(';').any(statement_destroys)
}

fn statement_destroys(statement: &str) -> bool {
    let words: Vec<&str> = statement.split_whitespace().collect();
    let all = words.windows(2).any(|pair| match pair {
        ["drop", what] => DROPPED.contains(what),
        ["truncate", _] => true,
        _ => false,
    });
    // Without a condition every row is meant.
    let condition =
        words.iter().position(|word| *word == "where").map(|at| words[at + 1..].concat());
    let always =
        |text: &str| matches!(text.trim_end_matches(['"', '\'', ')']), "1=1" | "true" | "1" | "");
    let conditioned = condition.is_some_and(|text| !always(&text)) || words.contains(&"limit");
    let rows = words.windows(2).any(|pair| matches!(pair, ["delete", "from"]))
        || words.first() == Some(&"update") && words.contains(&"set");
    let graph = words.contains(&"detach") && words.contains(&"delete");
    all || rows && !conditioned || graph && !conditioned
}

#[cfg(test)]
mod tests {
    use super::destroys;

    #[test]
    fn statements_that_destroy_and_their_likes_that_do_not() {
        for text in [
            "DROP DATABASE app",
            "drop table if exists users;",
            "select 1; Truncate users cascade",
            "DELETE FROM users;",
            "update users set admin = true",
            "DELETE FROM users WHERE 1=1",
            "delete from users where true",
            "db.dropDatabase()",
            "db.users.deleteMany({})",
        ] {
            assert!(destroys(text), "{text}");
        }
        for text in [
            "select * from users",
            "DELETE FROM users WHERE id = 3;",
            "update users set name = 'x' where id = 1",
            "alter table users drop column age",
            "create table drops (id int)",
            "db.users.deleteMany({age: 3})",
            "-U",
        ] {
            assert!(!destroys(text), "{text}");
        }
    }
}
