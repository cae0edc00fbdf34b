//! The commands for users, and the help of each: its own flags and examples, not the whole list.

use std::fmt::Write as _;

use clap::{Arg, Command};

/// A command on the command line.
pub(crate) struct CommandHelp {
    pub(crate) word: &'static str,
    /// What follows the word.
    operands: &'static str,
    /// One line, in `ovnkube --help`.
    pub(crate) does: &'static str,
    /// What its users have to know.
    about: &'static str,
    /// The flags that change what it prints.
    flags: &'static [&'static str],
    /// A command line, and its purpose.
    examples: &'static [(&'static str, &'static str)],
}

pub(crate) const COMMANDS: &[CommandHelp] = &[
    CommandHelp {
        word: "config",
        operands: "[FLAGS]",
        does: "print every effective setting and where it comes from; -o json for programs",
        about: "Prints every setting that a run with the same flags would have, and the layer that it comes from: \
                flag, configuration file, environment, service account or default. Secrets are blanked.\n\n\
                It takes every flag; ovnkube --help lists them. Give those that the daemon is started with.",
        flags: &["output", "config-file"],
        examples: &[
            ("ovnkube config --init-master $(hostname)", "what a master would run with"),
            (
                "ovnkube config -o json | jq '.[] | select(.source != \"default\")'",
                "settings that are not left at the default",
            ),
        ],
    },
    CommandHelp {
        word: "db",
        operands: "status [nb|sb] | ACTION nb|sb [...] [FLAGS]",
        does: "the databases' servers: status, backup, restore, compact, leave, join, replace, bootstrap, convert",
        about: "Shows the state of the servers of the OVN databases, and changes it. nb is the northbound database, sb the \
                southbound one. --nb-address names the servers; the server on this host tells more than the others. For sb, \
                all flags begin with --sb. A step that \
                could lose the majority or contents is refused, with what to do first.\n\n\
                status [nb|sb]: a line for each server, then what may still fail and what to do. Every server is asked; one \
                that does not answer within 3 s has a line that says so. It changes nothing. -o json is for programs.\n\
                backup nb FILE: write the contents to a new file.\n\
                restore nb FILE: replace the contents by those of a backup; the earlier contents are in FILE.replaced afterwards, \
                or in FILE.replaced.2 and so on if that exists. Where the servers listen, and with which certificate, stays as it is: the \
                rows of the tables Connection and SSL are kept.\n\
                compact nb: this host's server writes its file anew, without outdated entries.\n\
                leave nb: this host's member leaves its cluster for ever. leave nb SERVER: it removes another member that is lost; \
                SERVER is its id, as status prints it, or its address for members.\n\
                join nb LOCAL [MEMBERS]: make the file with which this host's server will join the cluster. LOCAL is this \
                host's address for members, MEMBERS is theirs; if left out, the same port on the hosts of --nb-address. LOCAL is \
                ssl: if clients use TLS, else tcp:, and its port is not the clients'.\n\
                replace nb LOCAL [MEMBERS]: the same for a member whose host has a new address: its file keeps the old one.\n\
                bootstrap nb LOCAL [FILE]: make the file of a new cluster, from the file of this host's server, a backup, or \
                empty.\n\
                convert nb [SCHEMA]: give the running database the newer schema of this host's OVN.\n\n\
                Stop ovsdb-server before join, replace and bootstrap, and start it afterwards. The exit code is 0 \
                when all is well or done, 2 when there is something to do or the step is refused, and 1 when it failed.",
        flags: &["output", "config-file", "nb-address", "nb-run-dir", "nb-db-location"],
        examples: &[
            ("ovnkube db status", "both databases, at the addresses of the configuration file"),
            ("ovnkube db status nb --nb-address=tcp:10.0.0.1:6641,tcp:10.0.0.2:6641,tcp:10.0.0.3:6641", "one cluster"),
            ("ovnkube db replace nb tcp:10.0.0.9:6643", "this host has the address 10.0.0.9 now"),
        ],
    },
    CommandHelp {
        word: "endpoints",
        operands: "wait | publish ADDRESS NB-PORT SB-PORT [FLAGS]",
        does: "wait for, or publish, the addresses of databases in pods, as charts of ovn-kubernetes do",
        about: "In the charts of ovn-kubernetes the databases' pod makes an Endpoints object ovnkube-db with its address, and \
                all other pods wait for it. The image does both with this command.\n\n\
                wait prints the addresses of the northbound and of the southbound database, one line each. publish makes \
                the object; ADDRESS may be a comma list. If it exists and says something else, publish fails and says so: \
                it changes no object.",
        flags: &["ovn-config-namespace", "k8s-kubeconfig", "k8s-apiserver"],
        examples: &[
            ("ovnkube endpoints publish 10.0.0.1 6641 6642", "where the databases run"),
            ("ovnkube endpoints wait", "where programs need them"),
        ],
    },
    CommandHelp {
        word: "event",
        operands: "pod NAMESPACE/NAME UID NODE MESSAGE [REASON] | node NODE MESSAGE [REASON] [FLAGS]",
        does: "report as an Event what a container of a pod has to say, as the image does",
        about: "The image's entrypoint writes to its log why it ends, and then calls this, so that kubectl describe pod and \
                kubectl get events show it too. The Event is about the pod or, where that is not known, about the node. If there is one \
                already, its count is raised, where the account may. It gives up after 3 s.\n\n\
                REASON is ContainerEnded, or DatabaseDiskFull, with which containers of databases say that their disk is \
                full or nearly full.\n\n\
                Write -- before the words if the message may begin with a dash. It needs an account that may create Events in the \
                namespace of the pod, or for a node in the namespace default.",
        flags: &["k8s-kubeconfig", "k8s-apiserver", "k8s-cacert", "k8s-token-file", "config-file"],
        examples: &[(
            "ovnkube event -- pod ovn-kubernetes/$POD_NAME $POD_UID $K8S_NODE \"no such file\"",
            "in a container of that pod",
        )],
    },
    CommandHelp {
        word: "ic",
        operands: "status | routes | diagnose | reset | clean az|node NAME [FLAGS]",
        does: "the interconnection with other clusters: status, routes, diagnose, reset, clean",
        about: "Shows how this cluster is joined with others, and repairs that. The ConfigMap ovn-ic-config says where the shared \
                databases are; if it is gone, or a key cannot be used, the command uses what the masters could use last, \
                and says so. Give the flags or the configuration file of the masters: their ranges decide which prefixes can \
                be used. If a server does not answer within 10 s, the command says so, and what is unknown therefore.\n\n\
                status: the shared databases' servers, each cluster with its gateways and addresses, since when it has been \
                joined or silent, how many of its prefixes are used, and what is to be done.\n\
                routes: each prefix of other clusters, by which transit switches, for how long, used or refused with the reason, \
                and the routes that you declared or wrote. Of clusters without ovnkube it is not known how long they are joined \
                or offer a prefix.\n\
                diagnose: everything that is checked, one line each, with what to do.\n\
                reset: remove everything that this cluster has there, and its routes to the others, and wait until the running master \
                has made it anew, with the same addresses. Packets to other clusters are lost for some seconds. While \
                enable-ic is \"false\" it only removes. Routes that you wrote stay.\n\
                clean az NAME: remove what the cluster of this az-name left. clean node NAME: only one gateway, by the name \
                of its host or the id of its chassis. Refused for a cluster that answers within 15 s or never has, as those of \
                OVN 23.03; --force removes it even then. One that is alive joins again.\n\n\
                -o json is for programs, with the first three. The exit code is 0 when all is well or done, 2 when there is \
                something to do or the step is refused, and 1 when it failed.",
        flags: &["output", "force", "config-file", "k8s-kubeconfig", "nb-address", "sb-address", "cluster-subnets"],
        examples: &[
            (
                "ovnkube ic status --k8s-kubeconfig ~/.kube/config --nb-address tcp:10.0.0.1:6641 --sb-address tcp:10.0.0.1:6642",
                "how it is",
            ),
            ("ovnkube ic routes -o json | jq '.clusters[].prefixes[] | select(.used | not)'", "what is refused"),
            ("ovnkube ic clean az az3", "that cluster is gone for ever"),
        ],
    },
    CommandHelp {
        word: "identity",
        operands: "--webhook-cert-dir DIRECTORY [FLAGS]",
        does: "approve certificates of node agents; serve an admission webhook, for older Kubernetes",
        about: "Does two things until it is stopped; a flag disables each of them.\n\n\
                The approver watches CertificateSigningRequests. It approves those in which a kubelet, or a node agent with a \
                certificate, asks for the certificate of the agent of its own node, and denies other requests for names of \
                agents; the condition says why. Agents ask if they are started with --bootstrap-kubeconfig and --cert-dir. \
                Several approvers decide the same. It needs an account that may do this: dist/identity has one.\n\n\
                The webhook answers admission reviews over HTTPS. It keeps each kubelet and each node agent to the \
                annotations that agents write, and each agent to its own Node. These are the rules of \
                dist/yaml/admission.yaml, for releases of Kubernetes that are too old for such policies. A \
                ValidatingWebhookConfiguration sends it reviews of nodes and \
                events at /node and of pods at /pod; dist/identity has one. /healthz tells that it works. It needs no access \
                to Kubernetes or to a database. When the files of the certificate change, it reads them again.",
        flags: &[
            "webhook-cert-dir",
            "webhook-host",
            "webhook-port",
            "disable-webhook",
            "disable-approver",
            "config-file",
            "k8s-kubeconfig",
            "k8s-apiserver",
            "k8s-cacert",
            "k8s-token-file",
            "loglevel",
            "logfile",
        ],
        examples: &[
            ("ovnkube identity --webhook-cert-dir /etc/webhook-cert --disable-approver", "on a host of an API server"),
            ("ovnkube identity --disable-webhook", "in a pod that may approve"),
        ],
    },
    CommandHelp {
        word: "install-cni",
        operands: "[PROGRAM] [FLAGS]",
        does: "copy the CNI program to the directory where the container runtime looks for it",
        about: "Copies PROGRAM, the image's /usr/libexec/cni/ovn-k8s-cni-overlay if left out, to the host's directory of CNI programs. A \
                runtime that starts it meanwhile gets the old or the new one, never a part. What is there already is not \
                written again.\n\n\
                It needs no access to Kubernetes or to a database, and reads no configuration file.",
        flags: &["cni-bin-dir"],
        examples: &[(
            "ovnkube install-cni --cni-bin-dir=/host/opt/cni/bin",
            "in a pod that has the host's directory there",
        )],
    },
    CommandHelp {
        word: "plan",
        operands: "--node NAME [FLAGS]",
        does: "print what the node agent would change on this host, and change nothing; --node NAME",
        about: "Prints what the node agent would change on this host, one step a line, in the order in which it would. \
                NAME is the node's name in Kubernetes. Nothing is changed: neither on the host nor in the cluster. \
                The exit code is 0 when nothing would be changed, 2 when something would, and 1 when ovnkube cannot find out.\n\n\
                It takes every flag; ovnkube --help lists them. Give those that the agent is started with. It needs \
                root, the local Open vSwitch and the API server. It does not check the ports of pods that are wired already.",
        flags: &["node", "config-file"],
        examples: &[
            ("ovnkube plan --node $(hostname)", "what an agent would do first, with the settings of the file"),
            ("ovnkube plan --node $(hostname) --gateway-mode=local", "what another gateway mode would change"),
        ],
    },
    CommandHelp {
        word: "preflight",
        operands: "[--node] [FLAGS]",
        does: "print what to do before ovnkube takes over the cluster or, with --node, this host",
        about: "Prints what to do before ovnkube takes over a cluster that is empty or runs ovn-kubernetes: one line for \
                each finding, with what it is, where it is and a remedy. Nothing is changed. The exit code is 0 when there \
                is nothing to do, 2 when there is something, and 1 when ovnkube cannot find out.\n\n\
                It reads Nodes, Namespaces, the services of the namespace default, DaemonSets, Deployments, the objects of \
                features that ovnkube does not support, and the northbound database: give it a kubeconfig that may. A \
                kubeconfig may name a credential plugin (exec): it is run, as kubectl does. With --node it reads only this \
                host, as root: kernel modules, versions of nft, Open vSwitch and ovn-controller, the uplink's MTU, network \
                configurations, processes.\n\n\
                It takes every flag; ovnkube --help lists them. Give those that the masters or the agent will be started \
                with.",
        flags: &["node", "config-file", "k8s-kubeconfig", "nb-address", "cluster-subnets", "k8s-service-cidrs", "mtu"],
        examples: &[
            ("ovnkube preflight --k8s-kubeconfig ~/.kube/config --nb-address tcp:10.0.0.1:6641", "the cluster"),
            ("ovnkube preflight --node", "this host, with the settings of the file"),
        ],
    },
    CommandHelp {
        word: "readiness-probe",
        operands: "-t TARGET [FLAGS]",
        does: "ask a program on this host whether it works, for probes of pods; -t TARGET",
        about: "Exits with 0 if the target works, and with 1 and the reason if it does not, or does not answer within 5 s. The words are \
                those of ovn-kubernetes' ovn-kube-util. It needs no access to Kubernetes, and reads no configuration file.\n\n\
                ovnnb-db, ovnsb-db: the database's server answers.\n\
                ovnnb-db-raft, ovnsb-db-raft: it is a member of its cluster, which has a leader, and no lost server has its address \
                there.\n\
                ovn-ic-db: both databases that connect clusters, alone or as members.\n\
                ovn-northd: it is connected to the southbound database, and not paused.\n\
                ovs-daemons: ovsdb-server and ovs-vswitchd answer.\n\
                ovn-controller: it is connected to the southbound database, and Open vSwitch's database answers.\n\
                ovnkube-node: the CNI configuration is there, and the node agent has found its node ready for pods within the last \
                minute.\n\
                ovnkube-node-alive: for liveness probes: the node agent answers, or has not begun to listen, as while it waits for the \
                API server.",
        flags: &["target", "nb-run-dir", "sb-run-dir", "ovs-run-dir", "cni-conf-dir"],
        examples: &[
            ("ovnkube readiness-probe -t ovn-controller", "on a node"),
            ("ovnkube readiness-probe -t ovnnb-db-raft", "on a host of the databases"),
        ],
    },
    CommandHelp {
        word: "replay",
        operands: "FILE",
        does: "print what a recording made with --record leads to: rows, annotations, events",
        about: "Prints the rows, annotations and events that a recording leads to. FILE is one that a master or \
                network controller made with --record. Nothing but the file is read, and nothing is written.",
        flags: &[],
        examples: &[
            ("ovnkube --init-master $(hostname) --record /tmp/recording", "to record"),
            ("ovnkube replay /tmp/recording", "to see what it leads to"),
        ],
    },
    CommandHelp {
        word: "why",
        operands: "SRC DST PORT[/PROTO] [FLAGS]",
        does: "SRC DST PORT[/PROTO]: do policies allow it, which ones decide; pods as namespace/name, or addresses",
        about: "Tells whether NetworkPolicies allow a connection, and which policy and rule decide. SRC and DST are \
                pods, as namespace/name, or addresses; PROTO is TCP, UDP or SCTP. The first word of the answer is \
                allowed or denied; the exit code is 0 for both.\n\n\
                The objects are read from the cluster, or from files with --from. A kubeconfig may name a credential \
                plugin (exec): it is run, as kubectl does.",
        flags: &[
            "from",
            "config-file",
            "k8s-kubeconfig",
            "k8s-apiserver",
            "k8s-cacert",
            "k8s-token-file",
            "host-network-namespace",
            "enable-stateless-netpol",
        ],
        examples: &[
            ("ovnkube why shop/web shop/db 5432 --k8s-kubeconfig ~/.kube/config", "one pod to another"),
            ("ovnkube why 192.0.2.1 shop/web 80", "an address outside to a pod"),
            ("kubectl get ns,no,po,svc,netpol -A -o yaml >objects/all.yaml", "a cluster as files"),
            ("ovnkube why shop/web kube-system/dns 53/UDP --from objects/", "the same for objects in files"),
        ],
    },
];

/// The command of this name.
pub(crate) fn find(word: &str) -> Option<&'static CommandHelp> {
    COMMANDS.iter().find(|known| known.word == word)
}

/// The list in `ovnkube --help`.
pub(crate) fn list() -> String {
    let mut text = String::from("Commands (ovnkube COMMAND --help tells more):\n");
    for known in COMMANDS {
        let _ = writeln!(text, "  {:<15} {}", known.word, known.does);
    }
    text
}

impl CommandHelp {
    /// Its help; the texts of its flags are those of `all`.
    pub(crate) fn help<'a>(&self, all: impl Iterator<Item = &'a Arg>) -> String {
        let is_ours = |arg: &&Arg| self.flags.contains(&arg.get_id().as_str()) || arg.get_id() == "help";
        let mut examples = String::from("Examples:");
        for (line, good_for) in self.examples {
            let _ = write!(examples, "\n  # {good_for}\n  {line}");
        }
        Command::new(self.word)
            .about(self.about)
            .override_usage(format!("ovnkube {} {}", self.word, self.operands))
            .after_help(examples)
            .disable_help_flag(true)
            .next_line_help(true)
            .term_width(100)
            .args(all.filter(is_ours).map(|arg| arg.clone().help_heading("Flags")))
            .render_help()
            .to_string()
    }
}
