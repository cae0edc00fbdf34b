//! The table compared with the names and defaults that existing installations use, the sample file
//! and the docs page.

#![allow(clippy::unwrap_used, clippy::expect_used)] // helpers of tests are not in test functions

mod pages;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use ovnkube_config::settings::SETTINGS;
use ovnkube_config::table::Setting;
use ovnkube_config::{Places, file, load};

/// `flag, section, key, default` as ovn-kubernetes of December 2024 and its later additions have them.
fn known() -> impl Iterator<Item = [&'static str; 4]> {
    include_str!("known.tsv").lines().map(|line| {
        let mut cells = line.split('\t');
        std::array::from_fn(|_| cells.next().unwrap())
    })
}

fn by_flag(flag: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.flag == flag || setting.aliases.contains(&flag))
}

#[test]
fn every_known_flag_is_taken() {
    let missing: Vec<_> = known().filter(|[flag, ..]| *flag != "-" && by_flag(flag).is_none()).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn flags_of_2018_are_taken() {
    let flags = "net-controller pidfile gateway-interface gateway-nexthop gateway-spare-interface gateway-localnet ha \
                 encap-type encap-ip win-hnsnetwork-id cluster-subnet service-cluster-ip-range k8s-service-cidr \
                 init-gateways nodeport remove-node nb-server-privkey nb-server-cert nb-server-cacert \
                 sb-server-privkey sb-server-cert sb-server-cacert";
    let missing: Vec<_> = flags.split_whitespace().filter(|flag| by_flag(flag).is_none()).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn every_known_key_is_taken_at_its_place() {
    let taken = |section: &str, key: &str| {
        SETTINGS.iter().any(|setting| {
            (setting.section, setting.key) == (section, key) || setting.old_keys.contains(&(section, key))
        })
    };
    let missing: Vec<_> = known().filter(|[_, section, key, _]| !key.is_empty() && !taken(section, key)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// Where our default is not theirs, and why.
const OTHER_DEFAULTS: &[(&str, &str)] = &[
    ("cluster-subnets", "documented default of ovnkube"),
    ("encap-port", "6081 is geneve's; of vxlan it is 4789"),
    ("nb-client-privkey", "theirs is filled in when the address is ssl"),
    ("nb-client-cert", "theirs is filled in when the address is ssl"),
    ("nb-client-cacert", "theirs is filled in when the address is ssl"),
    ("sb-client-privkey", "theirs is filled in when the address is ssl"),
    ("sb-client-cert", "theirs is filled in when the address is ssl"),
    ("sb-client-cacert", "theirs is filled in when the address is ssl"),
    ("ha-election-lease-duration", "a dead master is replaced in seconds"),
    ("ha-election-renew-deadline", "a dead master is replaced in seconds"),
    ("ha-election-retry-period", "a dead master is replaced in seconds"),
    ("cluster-manager-ha-election-lease-duration", "a dead master is replaced in seconds"),
    ("cluster-manager-ha-election-renew-deadline", "a dead master is replaced in seconds"),
    ("cluster-manager-ha-election-retry-period", "a dead master is replaced in seconds"),
];

#[test]
fn defaults_are_the_known_ones_but_for_listed_differences() {
    let differing: Vec<&str> = known()
        .filter(|[flag, _, key, _]| *flag != "-" && !key.is_empty())
        .filter(|[flag, _, key, default]| {
            by_flag(flag).is_some_and(|setting| setting.key == *key && setting.default != *default)
        })
        .map(|[flag, ..]| flag)
        .collect();
    let listed: Vec<&str> = OTHER_DEFAULTS.iter().map(|(flag, _)| *flag).collect();
    assert_eq!(BTreeSet::from_iter(differing), BTreeSet::from_iter(listed));
}

#[test]
fn names_are_unique() {
    let flags: Vec<_> = SETTINGS
        .iter()
        .flat_map(|s| s.aliases.iter().copied().chain([s.flag]))
        .filter(|flag| !flag.is_empty())
        .collect();
    assert_eq!(flags.len(), BTreeSet::from_iter(&flags).len());
    let keys: Vec<_> = SETTINGS.iter().map(Setting::path).collect();
    assert_eq!(keys.len(), BTreeSet::from_iter(&keys).len());
}

/// Defaults are typed and checked like anything else.
#[test]
fn defaults_pass_all_checks() {
    let places = Places { config_file: "/nonexistent".into(), service_account: "/nonexistent".into() };
    let loaded = load(["config".into()], |_| None, &places).unwrap();
    assert_eq!(loaded.warnings, Vec::<String>::new());
    assert_eq!(loaded.not_yet(), Vec::<String>::new());
    assert_eq!(loaded.sources.len(), SETTINGS.len());
}

/// The checked-in page or sample is what the table makes; `UPDATE=1` renews it.
fn is_current(path: &str, made: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, made).unwrap();
    }
    let have = fs::read_to_string(&path).unwrap_or_default();
    assert!(have == made, "{} is old; renew it: UPDATE=1 cargo test -p ovnkube-config --test table", path.display());
}

#[test]
fn docs_page_is_current() {
    is_current("../docs/configuration.md", &pages::docs());
}

#[test]
fn sample_is_current() {
    is_current("ovn_k8s.conf", &pages::sample());
}

/// Taking away every `;` sets every key to its default, and only that.
#[test]
fn sample_names_every_key_with_its_default() {
    let sample = pages::sample();
    assert_eq!(file::parse(&sample).unwrap(), [], "nothing is set as installed");
    let entries = file::parse(&sample.replace("\n;", "\n")).unwrap();
    let of_sample: Vec<_> =
        entries.iter().map(|one| (one.section.as_str(), one.key.as_str(), one.value.as_deref().unwrap())).collect();
    let of_table: Vec<_> = SETTINGS
        .iter()
        .filter(|setting| !setting.section.is_empty())
        .map(|setting| (setting.section, setting.key, setting.default))
        .collect();
    assert_eq!(of_sample, of_table);
}
