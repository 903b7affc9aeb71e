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
    "dc.services.visualstudio.com",
    "google-analytics.com",
    "mixpanel.com",
    "posthog.com",
    "pypi.org",
    "registry.npmjs.org",
    "registry.yarnpkg.com",
    "segment.io",
    "sentry.io",
    "telemetry.nextjs.org",
    "vortex.data.microsoft.com",
];

/// Whether this name, or one above it, is one of them.
pub fn is_name(name: &str) -> bool {
    NAMES.iter().any(|known| {
        name.strip_suffix(known).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_labels_count() {
        for name in ["pypi.org", "registry.npmjs.org", "o1.ingest.sentry.io", "eu.i.posthog.com"] {
            assert!(is_name(name), "{name}");
        }
        for name in
            ["notpypi.org", "files.pythonhosted.org", "npmjs.org", "pypi.org.evil.example", ""]
        {
            assert!(!is_name(name), "{name}");
        }
    }
}
