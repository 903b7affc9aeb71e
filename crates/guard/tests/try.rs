#![allow(missing_docs)]
use mcp_guard::{Context, Shell, judge};
#[test]
fn try_it() {
    let Ok(text) = std::env::var("TRY") else { return };
    let v = judge(&text, Shell::Bash, &Context::default());
    println!("{:?}", v.decision);
    for f in &v.findings { println!("{} {:?} {:?} [{}]", f.rule, f.decision, f.span, &text[f.span.clone()]); }
}
