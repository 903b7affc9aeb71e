//! The seed's table of threats, and ways out that are particular to a Mac.

use crate::evaluator::{End, Question};
use crate::support::{Mac, PROJECT, scratch};

fn project() -> Mac {
    Mac::with(|f| f.write(PROJECT))
}

#[test]
fn read_files_outside_sandbox() {
    let mac = project();
    for path in [
        "/Users/me/.ssh/id_rsa",
        "/Users/me/.aws/credentials",
        "/Users/me/.netrc",
        "/Users/me/Library/Keychains/login.keychain-db",
        "/Users/me/Library/Application Support/Google/Chrome/Default/Cookies",
        "/Library/Keychains/System.keychain",
        "/private/etc/master.passwd",
        "/private/etc/sudoers",
        "/private/var/root/x",
        "/private/var/db/dslocal/nodes/Default/users/me.plist",
        "/opt/homebrew/etc/my.cnf",
        "/opt/homebrew/var/postgres/base",
        "/usr/local/var/mysql/x",
        "/Volumes/Backup/x",
    ] {
        assert!(!mac.may("file-read-data", path), "{path}");
        assert!(!mac.may("file-read-xattr", path), "{path}");
        assert!(!mac.may("file-map-executable", path), "{path}");
    }
}

/// The user's files have a second name on the volume they are stored on.
#[test]
fn read_files_under_their_other_names() {
    let mac = project();
    for path in [
        "/System/Volumes/Data/Users/me/.ssh/id_rsa",
        "/System/Volumes/Data/private/etc/sudoers",
        "/.vol/16777220/12345",
        "/tmp/x",
        "/var/root/x",
    ] {
        assert!(!mac.may("file-read-data", path), "{path}");
    }
}

#[test]
fn write_files_outside_sandbox() {
    let mac = project();
    for path in [
        "/Users/me/.zshrc",
        "/Users/me/.bash_profile",
        "/Users/me/.ssh/authorized_keys",
        "/Users/me/Library/LaunchAgents/evil.plist",
        "/Library/LaunchDaemons/evil.plist",
        "/private/etc/hosts",
        "/private/var/at/tabs/me",
        "/usr/local/bin/git",
        "/opt/homebrew/bin/git",
        "/private/tmp/x",
    ] {
        assert!(!mac.changes(path), "{path}");
    }
}

#[test]
fn navigate_and_operate_outside_sandbox() {
    let mac = project();
    assert!(mac.may("file-read-data", "/"), "the loader needs the names in /");
    for path in
        ["/Users", "/Users/me", "/private/var", "/Volumes", "/Users/me/key.pem", "/Applications"]
    {
        assert!(!mac.may("file-read-data", path), "{path}");
    }
}

#[test]
fn exfiltrate_via_network() {
    let mac = project();
    for to in [
        End::ip("203.0.113.5", 443),
        End::ip("203.0.113.5", 53),
        End::ip("10.0.0.1", 22),
        End::ip("169.254.169.254", 80),
        End::ip("127.0.0.1", 5432),
        End::Unix("/private/var/run/docker.sock".to_owned()),
        End::Unix("/private/tmp/com.apple.launchd.x/Listeners".to_owned()),
        End::Unix("/private/var/run/mDNSResponder".to_owned()),
        End::Unix("/Users/me/.gnupg/S.gpg-agent".to_owned()),
    ] {
        assert!(!mac.asks(Question::outbound(to.clone())), "{to:?}");
    }
    for at in [End::ip("0.0.0.0", 8080), End::ip("127.0.0.1", 8080)] {
        assert!(!mac.asks(Question::bind(at)));
    }
}

/// launchd, LaunchServices and AppleEvents start programs that are not in the sandbox.
#[test]
fn process_escape_and_persistence() {
    let mac = project();
    for operation in ["job-creation", "lsopen", "appleevent-send", "mach-register", "file-mount"] {
        assert!(!mac.asks(Question::new(operation)), "{operation}");
    }
    for service in [
        "com.apple.coreservices.launchservicesd",
        "com.apple.lsd.mapdb",
        "com.apple.coreservices.appleevents",
        "com.apple.xpc.launchd.user.domain",
        "com.apple.SecurityServer",
        "com.apple.securityd",
        "com.apple.securityd.xpc",
        "com.apple.trustd.agent",
        "com.apple.pasteboard.1",
        "com.apple.windowserver.active",
        "com.apple.cfprefsd.daemon",
        "com.apple.tccd",
        "com.apple.SystemConfiguration.configd",
        "com.apple.mDNSResponder",
        "com.apple.networkd",
        "com.apple.usernotifications.usernotificationservice",
    ] {
        assert!(!mac.looks_up(service), "{service}");
    }
    for operation in
        ["signal", "process-info-pidinfo", "process-info-listpids", "mach-priv-task-port"]
    {
        assert!(!mac.asks(Question::other_process(operation)), "{operation}");
    }
    assert!(mac.asks(Question::same_sandbox("signal")), "a shell ends its own jobs");
    assert!(mac.asks(Question::same_sandbox("process-info-pidinfo")));
}

/// Whatever it pivots to runs under the same profile; `nohup` and `setsid` change nothing of that.
#[test]
fn interpreter_pivot() {
    let mac = project();
    for program in
        ["/usr/bin/python3", "/usr/bin/ruby", "/bin/zsh", "/usr/bin/nohup", "/usr/bin/osascript"]
    {
        assert!(mac.executes(program), "{program}");
    }
    assert!(!mac.executes("/Users/me/Downloads/tool") && !mac.executes("/Applications/Evil.app/x"));
}

#[test]
fn other_peoples_arguments_and_environment_are_not_for_reading() {
    let mac = project();
    for name in [
        "kern.procargs2",
        "kern.procargs2.123",
        "kern.proc.all",
        "kern.proc.pid.1",
        "net.routetable",
    ] {
        assert!(!mac.asks(Question::name("sysctl-read", name)), "{name}");
    }
    for name in ["hw.ncpu", "hw.memsize", "kern.osrelease", "kern.hostname"] {
        assert!(mac.asks(Question::name("sysctl-read", name)), "{name}");
        assert!(!mac.asks(Question::name("sysctl-write", name)), "{name}");
    }
}

#[test]
fn no_set_uid_files_are_left_behind() {
    let mac = project();
    assert!(mac.writes("/Users/me/project/x"));
    assert!(!mac.may("file-write-setugid", "/Users/me/project/x"));
    assert!(!mac.may("file-write-setugid", &scratch("tmp/x")));
}

/// A hard link or a clone would give a file that may only be read a name under which it can be written.
#[test]
fn links_and_clones_only_of_what_can_be_written() {
    let mac = Mac::with(|f| {
        f.write(PROJECT).read("/Users/me/notes").deny("**/.env").protect(mcp_policy::Protect::Usual)
    });
    for operation in ["file-link", "file-clone"] {
        assert!(mac.may(operation, "/Users/me/project/a"), "cargo and pnpm need {operation}");
        assert!(mac.may(operation, &scratch("tmp/a")), "{operation}");
        for closed in [
            "/Users/me/notes/a",
            "/Users/me/project/.env",
            "/Users/me/project/.vscode/settings.json",
            "/bin/sh",
        ] {
            assert!(!mac.may(operation, closed), "{operation} {closed}");
        }
    }
}

#[test]
fn terminals_of_others_are_closed() {
    use mcp_sandbox::{Request, Stdio};
    let mac = project();
    for operation in ["file-read-data", "file-write-data", "file-ioctl"] {
        assert!(!mac.may(operation, "/dev/ttys001"), "{operation}");
        assert!(!mac.may(operation, "/dev/tty"), "{operation}");
        assert!(mac.may(operation, "/dev/ptmx"), "openpty() needs {operation}");
    }
    assert!(mac.asks(Question::new("pseudo-tty")), "openpty() without a terminal");
    let stdio = [Stdio::Terminal, Stdio::Terminal, Stdio::Terminal];
    let request = Request { stdio, ..crate::support::request(crate::support::policy(|f| f)) };
    let mac = Mac::of(&request);
    assert!(mac.asks(Question::new("pseudo-tty")) && mac.may("file-ioctl", "/dev/tty"));
    assert!(!mac.may("file-ioctl", "/dev/ttys001"), "the terminal of another program");
    assert!(!mac.may("file-write-data", "/dev/ttys001"), "the terminal of another program");
}

#[test]
fn devices_of_the_machine_are_closed() {
    let mac = project();
    for device in ["/dev/disk0", "/dev/rdisk0", "/dev/bpf0", "/dev/auditpipe", "/dev/pf"] {
        assert!(
            !mac.may("file-read-data", device) && !mac.may("file-write-data", device),
            "{device}"
        );
    }
    assert!(mac.may("file-write-data", "/dev/null") && mac.reads("/dev/urandom"));
}

#[test]
fn the_run_has_places_of_its_own_and_nothing_beside_them() {
    let mac = Mac::with(|f| f);
    assert!(mac.writes(&scratch("home/x")) && mac.writes(&scratch("tmp/x")));
    for closed in ["canary", "created", "other"] {
        assert!(!mac.may("file-read-data", &scratch(closed)), "{closed}");
        assert!(!mac.changes(&scratch(closed)), "{closed}");
    }
    // Also where a directory above was granted: the self-check must be refused.
    let all = Mac::with(|f| f.write("/private/var/folders"));
    for closed in ["canary", "created"] {
        assert!(!all.may("file-read-data", &scratch(closed)) && !all.changes(&scratch(closed)));
    }
}

#[test]
fn grants_stay_where_they_are() {
    let mac = project();
    assert!(!mac.moves(PROJECT), "another directory could be put in its place");
    assert!(mac.moves("/Users/me/project/src"));
}
