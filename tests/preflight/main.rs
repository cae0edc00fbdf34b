//! What `ovnkube preflight` finds: each `<case>.yaml` is what was observed of a cluster or a host, `<case>.want` the lines.
//! `UPDATE=1` writes the latter.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;

use ovnkube_model::Finding;
use ovnkube_node_plan::preflight as host;
use ovnkube_plan::preflight::{self, is_of_ovn};

/// The minimum number of cases, so that none gets lost.
const AT_LEAST: usize = 6;

fn findings(case: &str, text: &str) -> Vec<Finding> {
    let wrong = |problem: &dyn std::fmt::Display| -> Vec<Finding> { panic!("{case}: {problem}") };
    if case.starts_with("host") {
        return serde_saphyr::from_str(text).map_or_else(|e| wrong(&e), |observed| host::check(&observed));
    }
    serde_saphyr::from_str(text).map_or_else(|e| wrong(&e), |observed| preflight::check(&observed))
}

#[test]
fn every_case_gives_its_lines() {
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("preflight");
    let mut files: Vec<_> = std::fs::read_dir(&home).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|end| end == "yaml"));
    files.sort();
    assert!(files.len() >= AT_LEAST, "only {} cases", files.len());
    let mut wrong = Vec::new();
    for file in files {
        let case = file.file_stem().unwrap().to_string_lossy().into_owned();
        let found = findings(&case, &std::fs::read_to_string(&file).unwrap());
        let have: String = found.iter().map(|finding| finding.to_string() + "\n").collect();
        let want = file.with_extension("want");
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&want, &have).unwrap();
        }
        if std::fs::read_to_string(&want).unwrap_or_default() != have {
            wrong.push(format!("{case}:\n{have}"));
        }
    }
    assert!(wrong.is_empty(), "{}\nUPDATE=1 accepts this", wrong.join("\n"));
}

#[test]
fn a_definition_of_another_plugin_does_not_count() {
    for (config, is) in [
        (r#"{"type": "ovn-k8s-cni-overlay", "name": "blue", "topology": "layer2"}"#, true),
        (r#"{"name": "blue", "plugins": [{"type": "ovn-k8s-cni-overlay"}]}"#, true),
        (r#"{"type": "ovn-k8s-cni-overlay", "name": "default"}"#, false),
        (r#"{"type": "macvlan"}"#, false),
        (r#"["ovn-k8s-cni-overlay"]"#, false),
        ("", false),
    ] {
        assert_eq!(is_of_ovn(config), is, "{config}");
    }
}
