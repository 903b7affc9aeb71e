//! Names that programs ask for on their own account: whether there is a newer version, and what they tell their makers.
//! A command that is refused these does its work all the same, so one line at the end is enough.

const NAMES: &[&str] = &[
    "amplitude.com",
    "analytics.google.com",
    "applicationinsights.azure.com",
    "browser-intake-datadoghq.com",
    "bugsnag.com",
    "checkpoint-api.hashicorp.com",
    "checkpoint.prisma.io",
    "clients2.google.com",
    "dc.services.visualstudio.com",
    "google-analytics.com",
    "mixpanel.com",
    "posthog.com",
    "segment.io",
    "sentry.io",
    "telemetry.nextjs.org",
    "update.googleapis.com",
    "vortex.data.microsoft.com",
];

/// Asked for an update check as well as for an installation, which waits for its answer.
const REGISTRIES: &[&str] = &["pypi.org", "registry.npmjs.org", "registry.yarnpkg.com"];

/// Whether this name, or one above it, is asked for on a program's own account only.
pub fn is_name(name: &str) -> bool {
    is_one_of(NAMES, name)
}

/// Whether this name is a registry of packages.
pub fn is_registry(name: &str) -> bool {
    is_one_of(REGISTRIES, name)
}

fn is_one_of(names: &[&str], name: &str) -> bool {
    names.iter().any(|known| {
        name.strip_suffix(known).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_labels_count() {
        for name in ["sentry.io", "o1.ingest.sentry.io", "eu.i.posthog.com"] {
            assert!(is_name(name), "{name}");
        }
        for name in ["pypi.org", "registry.npmjs.org"] {
            assert!(is_registry(name) && !is_name(name), "{name}");
        }
        for name in [
            "notsentry.io",
            "notpypi.org",
            "files.pythonhosted.org",
            "npmjs.org",
            "pypi.org.evil.example",
            "",
        ] {
            assert!(!is_name(name) && !is_registry(name), "{name}");
        }
    }
}
