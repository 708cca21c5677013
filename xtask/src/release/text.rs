//! The places that state the version, and the section of the changelog.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// Returns what the texts of the repository say wrongly about a release of this version.
pub(super) fn problems(root: &Path, version: &str) -> Result<Vec<String>> {
    let read = |name: &str| {
        let path = root.join(name);
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    };
    let mut problems = other_versions(&read("Cargo.toml")?, version);
    let citation = read("CITATION.cff")?;
    if !citation.lines().any(|line| line == format!("version: {version}")) {
        problems.push(format!("CITATION.cff does not have `version: {version}`"));
    }
    let changelog = read("CHANGELOG.md")?;
    problems.extend(changelog_problem(&changelog, version));
    problems.extend(date_problem(&citation, &changelog, version));
    Ok(problems)
}

/// Returns what is wrong if the citation does not have the date of the changelog.
fn date_problem(citation: &str, changelog: &str, version: &str) -> Option<String> {
    let (_, section) = changelog.split_once(&format!("## [{version}] - "))?;
    let date = section.lines().next().unwrap_or_default();
    let is_same = citation.lines().any(|line| line == format!("date-released: {date}"));
    (!is_same)
        .then(|| format!("CITATION.cff does not have `date-released: {date}`, the date of the changelog"))
}

/// Returns a sentence for each crate of the workspace that is required in another version.
///
/// Cargo would take 1.2.0 for a crate of version 1.2.3, so that the published crates could be combined with older ones.
fn other_versions(manifest: &str, version: &str) -> Vec<String> {
    let crates = manifest.lines().filter(|line| line.contains("path = \"crates/"));
    let versioned = crates.filter(|line| line.contains("version = "));
    let others = versioned.filter(|line| !line.contains(&format!("version = \"{version}\"")));
    others.map(|line| format!("Cargo.toml requires another version than {version}: {line}")).collect()
}

/// Returns what is wrong with the section of this version.
fn changelog_problem(changelog: &str, version: &str) -> Option<String> {
    let heading = format!("## [{version}]");
    let Some((_, section)) = changelog.split_once(&heading) else {
        return Some(format!("CHANGELOG.md has no section `{heading}`"));
    };
    let (date, rest) = section.split_once('\n').unwrap_or((section, ""));
    let entries = rest.split("\n## ").next().unwrap_or_default();
    if !entries.lines().any(|line| line.starts_with("- ")) {
        return Some(format!("CHANGELOG.md has nothing below `{heading}`"));
    }
    let date = date.trim_start_matches([' ', '-']);
    let is_date = date.len() == 10 && date.split('-').all(|part| part.parse::<u16>().is_ok());
    (!is_date)
        .then(|| format!("CHANGELOG.md has `{date}` instead of the date of {version}, such as 2026-01-31"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changelog_needs_a_dated_section_with_entries() {
        let problem = |text: &str| changelog_problem(text, "1.2.3");
        assert_eq!(problem("## [1.2.3] - 2026-11-19\n\n- A change.\n\n## [1.2.2]\n"), None);
        assert!(
            problem("## [1.2.2] - 2026-11-19\n\n- A change.\n")
                .is_some_and(|text| text.contains("no section"))
        );
        let unreleased = problem("## [1.2.3] - Unreleased\n\n- A change.\n");
        assert!(unreleased.is_some_and(|text| text.contains("`Unreleased` instead of the date")));
        let empty = problem("## [1.2.3] - 2026-11-19\n\n## [1.2.2]\n\n- A change.\n");
        assert!(empty.is_some_and(|text| text.contains("nothing below")));
    }

    #[test]
    fn citation_has_the_date_of_the_changelog() {
        let changelog = "## [1.2.3] - 2026-11-19\n\n- A change.\n";
        let problem = |citation: &str| date_problem(citation, changelog, "1.2.3");
        assert_eq!(problem("version: 1.2.3\ndate-released: 2026-11-19\n"), None);
        assert!(problem("date-released: 2026-11-18\n").is_some_and(|text| text.contains("2026-11-19")));
    }

    #[test]
    fn crates_are_required_in_one_version() {
        let manifest = "calmix-io = { path = \"crates/calmix-io\", version = \"1.2.0\" }\n\
                        calmix-core = { path = \"crates/calmix-core\", version = \"1.2.3\" }\n\
                        calmix-testkit = { path = \"crates/calmix-testkit\" }\n";
        let problems = other_versions(manifest, "1.2.3");
        assert!(problems.len() == 1 && problems[0].contains("calmix-io"), "{problems:?}");
    }

    #[test]
    fn this_version_is_the_same_everywhere() {
        let problems = problems(&crate::workspace::root(), env!("CARGO_PKG_VERSION")).expect("the texts");
        // Between releases the changelog has no date.
        let is_other = |problem: &&String| {
            !problem.contains("instead of the date") && !problem.contains("date of the changelog")
        };
        let other: Vec<_> = problems.iter().filter(is_other).collect();
        assert!(other.is_empty(), "{other:?}");
    }
}
