//! Mistakes that end the process at once, with one line that says what to do.

use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::lab::Dir;
use crate::process::{ovnkube, soon};

/// Flags, and what the line names: key, value, remedy.
const MISTAKES: [(&[&str], &[&str]); 9] = [
    (&["--init-master=a", "--cluster-subnets=10.128.0.0/33"], &["cluster-subnets", "10.128.0.0/33"]),
    (&["--init-master=a", "--mtu=0"], &["mtu", "0", "576"]),
    (&["--init-master=a", "--loglevel=9"], &["loglevel", "9", "5"]),
    (
        &["--init-master=a", "--nb-address=ssl:127.0.0.1:6641"],
        &["nb-client-privkey", "ovnnb-privkey.pem", "name a PEM file"],
    ),
    (&["--init-master=a", "--init-cluster-manager=b"], &["init-master", "init-cluster-manager"]),
    (&["--init-master=a", "--k8s-kubeconfig=NOWHERE"], &["kubeconfig", "NOWHERE"]),
    (&["--init-master=a", "--k8s-kubeconfig=GARBAGE"], &["kubeconfig", "GARBAGE", "line 1", "k8s-kubeconfig"]),
    (&["--init-master=a", "--k8s-apiserver=http://127.0.0.1:1", "--record=NOWHERE/file"], &["record", "NOWHERE/file"]),
    (&[], &["--init-master", "--init-node"]),
];

#[test]
fn mistakes_end_in_one_line() {
    for (flags, named) in MISTAKES {
        let dir = Dir::new();
        let (nowhere, garbage) = (dir.file("nowhere"), dir.file("garbage"));
        std::fs::write(&garbage, "clusters: [").unwrap();
        let put = |text: &str| {
            text.replace("NOWHERE", &nowhere.display().to_string()).replace("GARBAGE", &garbage.display().to_string())
        };
        let config = dir.file("ovn_k8s.conf");
        std::fs::write(&config, "").unwrap();
        let more = format!("--config-file={}", config.display());
        let began = Instant::now();
        let mut command = ovnkube(flags.iter().map(|flag| put(flag)).chain([more]));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        while child.try_wait().unwrap().is_none() && began.elapsed() < Duration::from_secs(120) {
            std::thread::sleep(Duration::from_millis(5));
        }
        let took = began.elapsed();
        let _ = child.kill();
        let out = child.wait_with_output().unwrap();
        let (stdout, said) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
        assert!(out.status.code().is_some_and(|code| code != 0), "{flags:?}: {:?}: {said}", out.status);
        assert!(took < soon(), "{flags:?} took {took:?}");
        assert_eq!((said.lines().count(), &*stdout), (1, ""), "{flags:?}: {said}");
        for word in named {
            assert!(said.contains(&put(word)), "{flags:?} does not name {word}: {said}");
        }
        assert_eq!(std::fs::read_dir(dir.file("")).unwrap().count(), 2, "{flags:?} writes files");
    }
}
