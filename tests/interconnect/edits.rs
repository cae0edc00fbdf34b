//! Every kind of edit, with masters that are killed at each of their writes.
//!
//! The same edits are made in two clusters, one after another. In the first one a master does its work undisturbed. In the second one a
//! master is killed as soon as something that it has written has arrived, and the next one starts, which is killed at its first write, and so
//! on: what N writes make is made by N masters, and each finds what the ones before it have left. The last one has nothing to do, and says so
//! by writing nothing to any database. Then all rows must be those of the undisturbed cluster. Also on the way there no row may go and come
//! back: others would follow that.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ovnkube_ovn::Uuid;
use ovnkube_tests::api::Running;
use ovnkube_tests::nb::{Release, Server, until};
use serde_json::json;
use tokio::time::sleep;

use crate::lab::{Lab, shared, shared_rows};

/// An edit, and how the rows tell that it is in effect: by words that are next to each other in a row.
struct Edit {
    what: &'static str,
    change: Change,
    has: &'static [&'static str],
    lacks: &'static [&'static str],
}

enum Change {
    /// Keys of the ConfigMap. They stay so when others are edited later.
    Keys(&'static [(&'static str, &'static str)]),
    /// The ConfigMap names the ports of other databases.
    Move,
    /// One more transit switch. The other cluster has a port there, and a second way to its prefix.
    AddSwitch,
    RemoveSwitch,
    /// The other cluster has one more prefix.
    OfferPrefix,
    WithdrawPrefix,
    /// A Subnet keeps a range of this cluster from the others.
    CloseRange,
    OpenRange,
    /// A gateway is no node any more.
    LoseNode,
}

/// The rows by which this cluster uses the other one's prefix, and by which it offers its own.
const THEIRS: &str = "Interconnection 10.244.0.0/16 169.254.100.77";
const OURS: &str = "ovnkube-cluster 10.128.0.0/14 169.254.100.";
/// The same in a second transit switch.
const THEIRS_TOO: &str = "Interconnection 10.244.0.0/16 169.254.101.77";
const OURS_TOO: &str = "ovnkube-cluster 10.128.0.0/14 169.254.101.";

/// Of the ConfigMap.
const KEYS: &[Edit] = &[
    Edit {
        what: "another name",
        change: Change::Keys(&[("az-name", "az7")]),
        has: &["c1 ts-az7", OURS, THEIRS],
        lacks: &["ts-az1", "az1-ts"],
    },
    Edit {
        what: "an MTU, and routes of hosts",
        change: Change::Keys(&[("gateway-mtu", "1300"), ("host-route", "true")]),
        has: &["gateway_mtu 1300", "n1 ovn.kubernetes.io/host-route true", "n3 ovn.kubernetes.io/host-route true"],
        lacks: &[],
    },
    Edit {
        what: "a declared route",
        change: Change::Keys(&[("routes", "az2 10.98.0.0/16")]),
        has: &["Interconnection 10.98.0.0/16"],
        lacks: &[],
    },
    Edit {
        what: "another declared route",
        change: Change::Keys(&[("routes", "az2 10.97.0.0/16")]),
        has: &["Interconnection 10.97.0.0/16"],
        lacks: &["Interconnection 10.98.0.0/16"],
    },
    Edit {
        what: "routes are not exchanged",
        change: Change::Keys(&[("auto-route", "false")]),
        has: &[],
        lacks: &[OURS, THEIRS],
    },
    Edit {
        what: "routes are exchanged",
        change: Change::Keys(&[("auto-route", "true")]),
        has: &[OURS, THEIRS],
        lacks: &[],
    },
    Edit {
        what: "one more server of the same databases",
        change: Change::Keys(&[("ic-db-host", "127.0.0.1,localhost")]),
        has: &["localhost"],
        lacks: &["present"],
    },
    Edit {
        what: "other databases",
        change: Change::Move,
        has: &["ic-nb-port second-nb", "c1 ts-az7", OURS, THEIRS],
        lacks: &["present", "left"],
    },
    Edit {
        what: "off",
        change: Change::Keys(&[("enable-ic", "false")]),
        has: &[],
        lacks: &["ts-az7", "az-name", "Interconnection"],
    },
    Edit { what: "on", change: Change::Keys(&[("enable-ic", "true")]), has: &["c1 ts-az7", OURS, THEIRS], lacks: &[] },
];

/// Of gateways, and of what others and Subnets say.
const REST: &[Edit] = &[
    Edit {
        what: "one more transit switch",
        change: Change::AddSwitch,
        has: &["c3 ts1-az1", OURS_TOO, THEIRS_TOO, OURS, THEIRS],
        lacks: &[],
    },
    Edit {
        what: "a prefix of another cluster",
        change: Change::OfferPrefix,
        has: &["Interconnection 10.99.0.0/16"],
        lacks: &[],
    },
    Edit {
        what: "it is withdrawn",
        change: Change::WithdrawPrefix,
        has: &[],
        lacks: &["Interconnection 10.99.0.0/16"],
    },
    Edit {
        what: "a range is closed",
        change: Change::CloseRange,
        has: &["ovnkube-cluster 10.131.0.0/16 169.254.100.", "ovnkube-cluster 10.131.0.0/16 169.254.101."],
        lacks: &[OURS, OURS_TOO],
    },
    Edit {
        what: "it is open again",
        change: Change::OpenRange,
        has: &[OURS, OURS_TOO],
        lacks: &["ovnkube-cluster 10.131.0.0/16"],
    },
    Edit {
        // the ports move to the new one once the others can know it
        what: "other gateways",
        change: Change::Keys(&[("gw-nodes", "n2,n1")]),
        has: &["c2 ts-az1", "c1 ts1-az1", "n2 ovn.kubernetes.io/ic-gw true", "n3 ovn.kubernetes.io/ic-gw false"],
        lacks: &["az1-ts-c3", "az1-ts1-c3"],
    },
    Edit {
        // a way whose gateway is away may go meanwhile, since there is another one
        what: "a gateway is gone",
        change: Change::LoseNode,
        has: &["c1 ts-az1", "c1 ts1-az1", OURS, OURS_TOO, THEIRS, THEIRS_TOO],
        lacks: &["az1-ts-c2", "az1-ts1-c2", "rtos-n2", "c2 is-interconn"],
    },
    Edit {
        // the last one is the row of its tunnel key
        what: "one transit switch less",
        change: Change::RemoveSwitch,
        has: &[OURS, THEIRS],
        lacks: &["ts1-az1", "az1-ts1", "16711682"],
    },
];

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_at_any_write_of_an_edited_key_changes_no_row() {
    kill_at_each_write(KEYS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_at_any_write_changes_no_row_whatever_else_is_edited() {
    kill_at_each_write(REST).await;
}

async fn kill_at_each_write(edits: &[Edit]) {
    // the first cluster gives the API server back before the second one takes it: two tests that wait for two would wait for ever
    let undisturbed = {
        let (mut cluster, joined, _engine) = Cluster::joined().await;
        let mut states = vec![joined];
        for edit in edits {
            let is_done = |state: &Vec<String>| edit.is_done(state);
            assert!(!states.last().is_some_and(is_done), "{} changes nothing", edit.what);
            cluster.make(&edit.change).await;
            states.push(cluster.rests(edit.what, |state| edit.is_done(state)).await);
        }
        states
    };
    let (mut cluster, joined, engine) = Cluster::joined().await;
    drop(engine);
    let (wanted_at_first, wanted) = undisturbed.split_first().unwrap();
    assert_eq!(difference(&joined, wanted_at_first), "", "two clusters that have just joined");
    let mut kills = Vec::new();
    for (edit, wanted) in edits.iter().zip(wanted) {
        kills.push((edit.what, cluster.killed(edit, wanted).await));
    }
    println!("{kills:?} kills");
    assert!(kills.iter().all(|(_, kills)| *kills > 0), "{kills:?}");
}

/// Nobody has written anything for so long: northd and the hosts have followed.
const FOLLOWED: Duration = Duration::from_millis(200);
/// The same while a master may have more to write.
const SETTLED: Duration = Duration::from_millis(700);
/// A master that has written nothing for so long may have nothing to do. What all rows say costs more than to wait.
const LOOK_AFTER: Duration = Duration::from_millis(600);
/// Longer than any wait of a master.
const PATIENCE: Duration = Duration::from_secs(90);
/// More masters than any edit needs.
const MOST: usize = 40;

/// The tables in which masters have rows: others change all the time.
const TABLES: [&str; 13] = [
    "Availability_Zone",
    "Chassis",
    "Datapath_Binding",
    "Encap",
    "Gateway",
    "Gateway_Chassis",
    "Logical_Router_Policy",
    "Logical_Router_Port",
    "Logical_Router_Static_Route",
    "Logical_Switch",
    "Logical_Switch_Port",
    "Port_Binding",
    "Route",
];

/// A cluster of ours that is joined with one that is only rows.
struct Cluster {
    lab: Lab,
    /// Other databases, which it may move to: the other cluster is there too.
    second: Arc<[Server; 2]>,
    files: Files,
    /// Names of the ports that the system has chosen: two clusters have different ones.
    ports: BTreeMap<String, &'static str>,
    /// What its ConfigMap has other than usual.
    keys: BTreeMap<&'static str, String>,
}

/// Those of all databases.
#[derive(Clone)]
struct Files(Vec<PathBuf>);

impl Files {
    /// Whatever is written makes one longer.
    fn sizes(&self) -> Vec<u64> {
        self.0.iter().map(|file| std::fs::metadata(file).map_or(0, |file| file.len())).collect()
    }
}

impl Edit {
    fn is_done(&self, state: &[String]) -> bool {
        self.has.iter().all(|words| says(state, words)) && !self.lacks.iter().any(|words| says(state, words))
    }
}

impl Cluster {
    /// With what there is then.
    async fn joined() -> (Self, Vec<String>, Running) {
        let mut lab = Lab::up(Release::Lts).await;
        lab.add_node("n2", ("c2", "172.18.0.3")).await;
        lab.add_node("n3", ("c3", "172.18.0.4")).await;
        let mut second = Arc::new(shared(Release::Lts));
        for _ in 0..2 {
            lab.add_switch("ts", "169.254.100.0/24");
            lab.add_other();
            std::mem::swap(&mut lab.shared, &mut second);
        }
        let servers = servers(&lab, &second);
        let files = Files(servers.iter().map(|server| server.database_file()).collect());
        let names = ["first-nb", "first-sb", "second-nb", "second-sb"];
        let ports = servers[2..].iter().map(|server| server.port().to_string()).zip(names).collect();
        let keys = BTreeMap::from([("gw-nodes", "n1,n3".to_owned())]);
        let cluster = Self { lab, second, files, ports, keys };
        let engine = cluster.lab.engine().await;
        cluster.configure().await;
        let is_joined = |state: &[String]| ["c1 ts-az1", OURS, THEIRS].iter().all(|words| says(state, words));
        let joined = cluster.rests("joined", is_joined).await;
        (cluster, joined, engine)
    }

    async fn configure(&self) {
        let keys: Vec<(&str, &str)> = self.keys.iter().map(|(key, value)| (*key, value.as_str())).collect();
        self.lab.configure(&keys).await;
    }

    async fn make(&mut self, change: &Change) {
        let lab = &self.lab;
        match change {
            Change::Keys(keys) => {
                self.keys.extend(keys.iter().map(|(key, value)| (*key, (*value).to_owned())));
                self.configure().await;
            }
            Change::Move => {
                let ports = self.second.iter().map(|server| server.port().to_string());
                self.keys.extend(["ic-nb-port", "ic-sb-port"].into_iter().zip(ports));
                self.configure().await;
            }
            Change::AddSwitch => {
                // the other cluster comes first: what it has decides the key of our port
                let zone = lab.zone("az2");
                let port = Lab::port(("az2", &zone), "gw2", "ts1", (9, "169.254.101.77/24"));
                lab.create(&[port, Lab::route(&zone, "ts1", "10.244.0.0/16", "169.254.101.77")]);
                lab.add_switch("ts1", "169.254.101.0/24");
            }
            Change::RemoveSwitch => {
                lab.shared[0].ctl("ovn-ic-nbctl", &["ts-del", "ts1"]);
                let zone = lab.zone("az2");
                for table in ["route", "port_binding"] {
                    lab.destroy(table, &["transit_switch=ts1", &zone]);
                }
            }
            Change::OfferPrefix => {
                lab.create(&[Lab::route(&lab.zone("az2"), "ts", "10.99.0.0/16", "169.254.100.77")]);
            }
            Change::WithdrawPrefix => lab.destroy("route", &["ip_prefix=\"10.99.0.0/16\""]),
            Change::CloseRange => {
                lab.subnet("ours", json!({"cidrBlock": "10.130.0.0/16", "disableInterConnection": true})).await;
            }
            Change::OpenRange => lab.delete_subnet("ours").await,
            Change::LoseNode => lab.api.delete_node("n2").await,
        }
    }

    /// Waits until all that is due is done, and stays so. Returns what there is then.
    async fn rests(&self, what: &str, is_done: impl Fn(&[String]) -> bool) -> Vec<String> {
        let began = Instant::now();
        'again: loop {
            let mut state = Vec::new();
            for long in [FOLLOWED, SETTLED] {
                self.is_followed(long).await;
                state = self.state().await;
                if !is_done(&state) {
                    assert!(began.elapsed() < PATIENCE, "{what} is not done:\n{}", state.join("\n"));
                    continue 'again;
                }
            }
            return state;
        }
    }

    /// Makes an edit while no master runs, and kills masters until one has nothing to do. Returns how many.
    async fn killed(&mut self, edit: &Edit, wanted: &[String]) -> usize {
        let before = servers(&self.lab, &self.second).map(|server| server.log().len());
        self.make(&edit.change).await;
        let mut kills = 0;
        while self.is_killed(edit.what, wanted).await {
            kills += 1;
            assert!(kills < MOST, "{}: masters write again and again", edit.what);
        }
        for (server, before) in servers(&self.lab, &self.second).into_iter().zip(before) {
            let again = made_again(server, before);
            assert!(again.is_empty(), "{}: {again:?} went and came back", edit.what);
        }
        kills
    }

    /// Starts a master, and kills it as soon as something is written; `false`: all is as wanted, and it writes nothing.
    async fn is_killed(&self, what: &str, wanted: &[String]) -> bool {
        self.is_followed(FOLLOWED).await;
        let before = self.files.sizes();
        let (files, same) = (self.files.clone(), before.clone());
        // what is on its way together with the first write arrives, as with a real kill; nothing is sent after it
        let engine = self.lab.engine_that_may_write(Arc::new(move || files.sizes() == same)).await;
        // patches of nodes are not in these files
        let has_written = || self.files.sizes() != before || engine.writes().1 > 0;
        let (began, mut looked) = (Instant::now(), Instant::now());
        while !has_written() {
            sleep(Duration::from_millis(20)).await;
            if engine.metrics.ready_duration.get() <= 0.0 || looked.elapsed() < LOOK_AFTER {
                continue;
            }
            let have = self.state().await;
            if have == wanted && !has_written() {
                assert_eq!(engine.writes(), (0, 0), "{what}");
                return false;
            }
            assert!(began.elapsed() < PATIENCE, "{what}: {}", difference(&have, wanted));
            looked = Instant::now();
        }
        true
    }

    /// Waits until the hosts and northd have followed what was written, and nobody has written anything for so long.
    async fn is_followed(&self, long: Duration) {
        until("all have followed", async || {
            let before = self.files.sizes();
            self.lab.hosts_follow();
            sleep(long).await;
            self.files.sizes() == before
        })
        .await;
    }

    /// The words of all rows and of the labels of nodes, sorted: without ids of rows, which differ between two clusters.
    async fn state(&self) -> Vec<String> {
        let nb = |columns, table| self.lab.nb.nbctl(&["--format=csv", columns, "list", table]);
        let nodes = self.lab.api.list("Node").await;
        let labels = nodes.iter().flat_map(|node| {
            let name = node["metadata"]["name"].as_str().unwrap_or_default();
            let labels = node["metadata"]["labels"].as_object().into_iter().flatten();
            labels.map(move |(key, value)| format!("node {name} {key} {value}"))
        });
        let of = |name: &str, shared: &[Server; 2]| {
            shared_rows(shared).lines().map(|row| format!("{name} {row}")).collect::<Vec<_>>()
        };
        let rows = [
            self.lab.own_rows(),
            self.lab.kept(),
            nb("--columns=name,chassis_name,priority", "gateway_chassis"),
            nb("--columns=name,type,addresses,options,external_ids", "logical_switch_port"),
        ];
        let rows = rows.iter().flat_map(|text| text.lines()).map(str::to_owned);
        let shared = of("first", &self.lab.shared).into_iter().chain(of("second", &self.second));
        let mut lines: Vec<String> = rows.chain(shared).chain(labels).map(|line| self.words(&line)).collect();
        lines.sort_unstable();
        lines
    }

    fn words(&self, line: &str) -> String {
        let words = line.split(|c: char| !c.is_ascii_alphanumeric() && !"-./:_".contains(c));
        let words = words.filter(|word| word.contains(|c: char| c.is_ascii_alphanumeric()));
        let words = words.filter(|word| word.parse::<Uuid>().is_err());
        words.map(|word| self.ports.get(word).copied().unwrap_or(word)).collect::<Vec<_>>().join(" ")
    }
}

/// Of the cluster itself, of the databases where it is at first, and of the others.
fn servers<'a>(lab: &'a Lab, second: &'a [Server; 2]) -> [&'a Server; 6] {
    [&lab.nb, &lab.sb, &lab.shared[0], &lab.shared[1], &second[0], &second[1]]
}

/// The rows that went and came back after the first `seen` transactions: masters derive their ids from names, so it is the same one.
fn made_again(server: &Server, seen: usize) -> BTreeSet<String> {
    let (mut gone, mut again) = (BTreeSet::new(), BTreeSet::new());
    for record in server.log().iter().skip(seen) {
        let tables = record.as_object().into_iter().flatten().filter(|(table, _)| TABLES.contains(&table.as_str()));
        for (uuid, row) in tables.filter_map(|(_, rows)| rows.as_object()).flatten() {
            if row.is_null() {
                gone.insert(uuid.clone());
            } else if gone.contains(uuid) {
                again.insert(uuid.clone());
            }
        }
    }
    again
}

/// Whether a row has these words next to each other.
fn says(state: &[String], words: &str) -> bool {
    state.iter().any(|row| row.contains(words))
}

/// The rows that only one of both has.
fn difference(have: &[String], want: &[String]) -> String {
    let only = |of: &[String], other: &[String], sign: &str| {
        of.iter()
            .filter(|line| !other.contains(line))
            .map(|line| format!("{sign} {line}\n"))
            .collect::<Vec<_>>()
            .concat()
    };
    only(have, want, "+") + &only(want, have, "-")
}
