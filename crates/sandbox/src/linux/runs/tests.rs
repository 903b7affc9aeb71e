use super::*;

#[test]
fn another_process_with_the_same_number_is_not_killed() {
    let id = RunId::random();
    let mut bystander = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    let pid = bystander.id();
    let started = live::started(pid).unwrap();
    let first = First { pid, started: started - 1 };
    let listed = run_records::list_run(&id, first, vec!["x".to_owned()], None).unwrap();
    let (found, handle) = list().into_iter().find(|(record, _)| record.id == id).unwrap();
    assert!(handle.kill(&found).is_err());
    drop(listed);
    // Stale: nothing to kill, whichever process has the number.
    handle.kill(&Record { init_started: started, ..found }).unwrap();
    assert!(bystander.try_wait().unwrap().is_none(), "the bystander was killed");
    bystander.kill().unwrap();
    bystander.wait().unwrap();
}

#[test]
fn a_tree_is_measured() {
    let stats = live::of_tree(std::process::id());
    assert!(stats.cpu_seconds.is_some() && stats.processes.is_some());
}
