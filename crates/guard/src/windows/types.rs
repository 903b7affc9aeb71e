//! Types of .NET that a text may name.

/// Types whose methods only compute.
const HARMLESS: &[&str] = &[
    "math",
    "string",
    "int",
    "long",
    "double",
    "bool",
    "datetime",
    "timespan",
    "guid",
    "char",
    "version",
    "environment",
    "io.path",
    "system.io.path",
    "convert",
    "regex",
    "array",
    "void",
    "text.encoding",
    "system.text.encoding",
    "pscustomobject",
    "ordered",
    "hashtable",
    "switch",
    "parameter",
    "cmdletbinding",
    "object",
    "string[]",
    "int[]",
    "byte[]",
    "uri",
    "xml",
    "decimal",
    "validateset",
    "console",
    "system.math",
    "byte",
    "float",
    "math.round",
];

pub fn is_harmless(name: &str) -> bool {
    HARMLESS.contains(&name.to_lowercase().trim_start_matches("system."))
}
