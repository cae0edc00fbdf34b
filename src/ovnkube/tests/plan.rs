//! `ovnkube plan --node`: exit code 2 is reserved for "there is something to change".

use crate::lab::Dir;
use crate::process::ovnkube;

#[test]
fn an_unknown_state_is_no_change() {
    let dir = Dir::new();
    let config = dir.file("ovn_k8s.conf");
    std::fs::write(&config, "").unwrap();
    let (config, run_dir) =
        (format!("--config-file={}", config.display()), format!("--ovs-run-dir={}", dir.file("").display()));
    for (words, named) in [
        (vec!["plan"], "needs the node's name; write ovnkube plan --node NAME"),
        (vec!["plan", "--node=n1", "--frobnicate"], "flag --frobnicate is unknown"),
        (vec!["plan", "--node=n1", "--k8s-apiserver=http://127.0.0.1:1", &config, &run_dir], "start Open vSwitch"),
    ] {
        let out = ovnkube(&words).output().unwrap();
        let (stdout, stderr) = (String::from_utf8(out.stdout).unwrap(), String::from_utf8(out.stderr).unwrap());
        assert_eq!((out.status.code(), stdout.as_str()), (Some(1), ""), "{words:?}: {stderr}");
        assert!(stderr.contains(named), "{words:?}: {stderr}");
    }
}
