//! Time limits, signals, and that nothing outlives a run.

use crate::shared::time_and_death::Heart;
use crate::support::{Run, heart_stops};
use crate::{require, shared_attacks};

shared_attacks! { "seatbelt", time_and_death:
    timeout;
    timeout_lets_a_program_clean_up;
    daemons_die_with_the_run;
    daemons_die_with_the_timeout;
    those_who_ignore_sigterm_die;
    the_stopped_die;
    killing_the_launcher_kills_everything;
    signals_are_passed_on;
    exit_codes_pass_through;
    output_is_the_childs_alone;
}

/// Double-forked, in a session of its own, and its parents gone before anybody looks.
#[test]
fn daemons_that_hurry_die_with_the_run() {
    require!("seatbelt");
    let heart = Heart::new();
    let run = heart.in_run(Run::new()).probe(&["daemonize", "60", heart.text()]);
    run.probe(&["exit", "0"]).run().code_is(0);
    std::thread::sleep(std::time::Duration::from_millis(500));
    if heart.path.exists() {
        heart_stops(&heart.path);
    }
}
