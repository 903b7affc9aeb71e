//! Short names of PowerShell's commands.

const ALIASES: &[(&str, &str)] = &[
    ("rm", "remove-item"),
    ("ri", "remove-item"),
    ("del", "remove-item"),
    ("erase", "remove-item"),
    ("rd", "remove-item"),
    ("rmdir", "remove-item"),
    ("iex", "invoke-expression"),
    ("iwr", "invoke-webrequest"),
    ("irm", "invoke-restmethod"),
    ("curl", "invoke-webrequest"),
    ("wget", "invoke-webrequest"),
    ("start", "start-process"),
    ("saps", "start-process"),
    ("spps", "stop-process"),
    ("kill", "stop-process"),
    ("ps", "get-process"),
    ("gps", "get-process"),
    ("gwmi", "get-wmiobject"),
    ("gcim", "get-ciminstance"),
    ("rwmi", "remove-wmiobject"),
    ("rcim", "remove-ciminstance"),
    ("icim", "invoke-cimmethod"),
    ("spsv", "stop-service"),
    ("sajb", "start-job"),
    ("icm", "invoke-command"),
    ("ii", "invoke-item"),
    ("mv", "move-item"),
    ("mi", "move-item"),
    ("move", "move-item"),
    ("ren", "rename-item"),
    ("rni", "rename-item"),
    ("cp", "copy-item"),
    ("copy", "copy-item"),
    ("cpi", "copy-item"),
    ("clc", "clear-content"),
    ("cli", "clear-item"),
    ("clear-disk", "clear-disk"),
    ("sc", "set-content"),
    ("ac", "add-content"),
    ("sp", "set-itemproperty"),
    ("rp", "remove-itemproperty"),
    ("ni", "new-item"),
    ("ls", "get-childitem"),
    ("dir", "get-childitem"),
    ("gci", "get-childitem"),
    ("h", "get-history"),
    ("ghy", "get-history"),
    ("history", "get-history"),
    ("sls", "select-string"),
    ("cat", "get-content"),
    ("gc", "get-content"),
    ("type", "get-content"),
    ("echo", "write-output"),
    ("write", "write-output"),
    ("cd", "set-location"),
    ("chdir", "set-location"),
    ("sl", "set-location"),
    ("pwd", "get-location"),
    ("ipmo", "import-module"),
    ("sal", "set-alias"),
    ("nal", "new-alias"),
    ("%", "foreach-object"),
    ("foreach", "foreach-object"),
    ("?", "where-object"),
    ("where", "where-object"),
    ("iwmi", "invoke-wmimethod"),
    ("tee", "tee-object"),
    ("nsn", "new-pssession"),
    ("etsn", "enter-pssession"),
    ("select", "select-object"),
    ("sort", "sort-object"),
    ("group", "group-object"),
    ("measure", "measure-object"),
    ("gi", "get-item"),
    ("gp", "get-itemproperty"),
    ("gpv", "get-itempropertyvalue"),
    ("si", "set-item"),
    ("cpp", "copy-itemproperty"),
    ("mp", "move-itemproperty"),
    ("rnp", "rename-itemproperty"),
    ("pushd", "push-location"),
    ("popd", "pop-location"),
    ("sasv", "start-service"),
    ("gsv", "get-service"),
    ("sleep", "start-sleep"),
    ("epcsv", "export-csv"),
    ("ipcsv", "import-csv"),
    ("rvpa", "resolve-path"),
    ("ndr", "new-psdrive"),
    ("mount", "new-psdrive"),
    ("rdr", "remove-psdrive"),
    ("rsn", "remove-pssession"),
    ("swmi", "set-wmiinstance"),
    ("ncim", "new-ciminstance"),
    ("scim", "set-ciminstance"),
];

/// The command a name stands for; without directories and `.exe`, in small letters.
pub fn canonical(name: &str) -> String {
    let name = name.to_lowercase();
    let name = name.rsplit(['\\', '/']).next().unwrap_or_default();
    // `curl.exe` is the program, `curl` the alias.
    let program = name.strip_suffix(".exe").or_else(|| name.strip_suffix(".com"));
    if let Some(program) = program {
        return program.to_owned();
    }
    ALIASES
        .iter()
        .find(|(alias, _)| *alias == name)
        .map_or_else(|| name.to_owned(), |(_, full)| (*full).to_owned())
}

/// Whether a name is a command that people know: an alias of PowerShell's, a cmdlet, or a program found everywhere.
pub fn is_command(name: &str) -> bool {
    let lower = name.to_lowercase();
    canonical(&lower) != lower
        || lower.contains('-')
        || super::portable::is_portable(&lower)
        || matches!(&*lower, "cmd" | "powershell" | "pwsh" | "wsl")
}
