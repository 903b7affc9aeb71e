//! Two principals, both eras, the same ids, answers in any order, clients that leave: no answer ever crosses.

use std::time::Duration;

use serde_json::{Value, json};

use super::support::{Client, Gateway, call};

/// Calls in all; `MCP_SERVE_CALLS=10000` for the long run.
fn calls() -> u64 {
    std::env::var("MCP_SERVE_CALLS").ok().and_then(|text| text.parse().ok()).unwrap_or(1_200)
}

struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// One thread of one principal; how many answers it had.
fn run(client: &Client, me: &str, session: bool, seed: u64, count: u64) -> u64 {
    let mut dice = Dice(seed);
    let mut answers = 0;
    for number in 0..count {
        let tool = if dice.below(4) == 0 { "steps" } else { "echo" };
        let arguments = json!({"me": me, "call": format!("{me}/{seed}/{number}"), "delay": dice.below(12), "steps": 2});
        // Without sessions everybody uses the same few ids at once.
        let (client, body, id) = if session {
            let id = seed * 1_000_000 + number;
            (client.clone(), call(id, tool, &arguments).to_string(), json!(id))
        } else {
            let id = json!(dice.below(2));
            let (client, body) = client.stateless(tool, &id, &arguments);
            (client, body, id)
        };
        if dice.below(8) == 0 {
            let stream = client.open("POST", &body);
            std::thread::sleep(Duration::from_millis(dice.below(10)));
            drop(stream);
            continue;
        }
        let answer = client.send("POST", &body);
        assert_eq!(answer.status, 200, "{}", answer.body);
        for (_, message) in answer.messages() {
            if message["method"] == "notifications/progress" {
                let token = if session { id.clone() } else { json!("p") };
                assert_eq!(message["params"]["progressToken"], token);
            }
        }
        let last: Value = answer.last();
        assert_eq!(last["id"], id);
        assert_eq!(last["result"]["call"], arguments["call"], "an answer has crossed");
        assert_eq!(last["result"]["owner"], me, "a process is shared by two principals");
        answers += 1;
    }
    answers
}

#[test]
fn no_answer_ever_crosses() {
    let gateway = Gateway::start("isolation", &["alice", "bob"], "");
    let names = ["alice", "bob"];
    let each = calls() / 8;
    let answers: u64 = std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for (principal, name) in names.into_iter().enumerate() {
            let session = gateway.client(principal).initialize("2025-06-18");
            for seed in 1..=4 {
                let client = if seed <= 2 { session.clone() } else { gateway.client(principal) };
                threads.push(scope.spawn(move || run(&client, name, seed <= 2, seed, each)));
            }
        }
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert!(answers > calls() / 2, "{answers} answers");
}
