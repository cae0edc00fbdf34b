//! `policy-table`: the generator and the evaluator for scripts.
#![allow(clippy::print_stdout, reason = "what scripts read")]

use std::io::{Read as _, Write as _, stdin, stdout};

use anyhow::{Context as _, Result, bail};
use ovnkube_policy_truth::evaluate::{addresses, name};
use ovnkube_policy_truth::generate::{OUTSIDE, PORTS, Size};
use ovnkube_policy_truth::{Cluster, End, Flow, Protocol, generate};
use serde_json::{Value, json};

const USAGE: &str = "usage: policy-table objects SEED NAMESPACES PODS IMAGE NODE... prints namespaces and pods
       policy-table policies SEED COUNT   prints policies; reads `kubectl get ns,pods -o json`
       policy-table expect                prints a line per question, [FROM, TO, ADDRESS, PROTOCOL, PORT, ALLOWED];
                                          reads `kubectl get ns,pods,netpol -o json`";

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["objects", seed, namespaces, pods, image, nodes @ ..] => {
            let size = Size {
                namespaces: namespaces.parse()?,
                pods: pods.parse()?,
                nodes: nodes.iter().map(|n| (*n).to_owned()).collect(),
                image: (*image).to_owned(),
            };
            list(&generate::objects(seed.parse()?, &size));
            Ok(())
        }
        ["policies", seed, count] => {
            list(&generate::policies(seed.parse()?, count.parse()?, &read()?));
            Ok(())
        }
        ["expect"] => expect(&read()?),
        _ => bail!("{USAGE}"),
    }
}

fn list(items: &[Value]) {
    println!("{}", json!({"apiVersion": "v1", "kind": "List", "items": items}));
}

fn read() -> Result<Cluster> {
    let mut text = String::new();
    stdin().read_to_string(&mut text)?;
    let list: Value = serde_json::from_str(&text)?;
    let mut cluster = Cluster::default();
    for item in list["items"].as_array().context("not a list of objects")? {
        match item["kind"].as_str().unwrap_or_default() {
            "Namespace" => cluster.namespaces.push(serde_json::from_value(item.clone())?),
            "Pod" => cluster.pods.push(serde_json::from_value(item.clone())?),
            "NetworkPolicy" => cluster.policies.push(serde_json::from_value(item.clone())?),
            other => bail!("{other:?} decides nothing"),
        }
    }
    Ok(cluster)
}

/// Every pod to every pod and to an address outside.
fn expect(cluster: &Cluster) -> Result<()> {
    let mut out = stdout().lock();
    let outside = OUTSIDE.iter().take(1).map(|ip| ip.parse().map(|ip| (format!("ip/{ip}"), End { pod: None, ip })));
    let outside: Vec<_> = outside.collect::<Result<_, _>>()?;
    for from in &cluster.pods {
        for from_ip in addresses(from) {
            let pods = cluster.pods.iter().flat_map(|pod| addresses(pod).into_iter().map(move |ip| (pod, ip)));
            let pods = pods.map(|(pod, ip)| (name(&pod.metadata), End { pod: Some(pod), ip }));
            for (to_name, to) in pods.chain(outside.clone()).filter(|(_, to)| to.ip.is_ipv4() == from_ip.is_ipv4()) {
                for (protocol, port) in [Protocol::Tcp, Protocol::Udp].into_iter().flat_map(|p| PORTS.map(|n| (p, n))) {
                    let flow = Flow { from: End { pod: Some(from), ip: from_ip }, to, protocol, port };
                    let row =
                        json!([name(&from.metadata), to_name, to.ip, protocol.name(), port, cluster.allows(&flow)]);
                    writeln!(out, "{row}")?;
                }
            }
        }
    }
    Ok(())
}
