//! The spec of a NetworkPolicy as it was written, and its parser.

use std::fmt::Display;

use serde::Deserialize;

use super::size::{Ports, Size};
use super::{Block, Direction, NetworkPolicy, Peer, PolicyPort, Rule};
use crate::selector::{LONGEST_TEXT, SelectorFields};
use crate::service::{MOST_REPORTED, decimal};
use crate::{BadField, Meta, Protocol, Selector, Subnet, keys};

/// Longest name of a port.
const LONGEST_PORT_NAME: usize = 15;

/// `spec`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PolicyFields {
    pod_selector: Option<SelectorFields>,
    policy_types: Option<Vec<String>>,
    ingress: Option<Vec<RuleFields>>,
    egress: Option<Vec<RuleFields>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct RuleFields {
    /// In ingress rules.
    from: Option<Vec<PeerFields>>,
    /// In egress rules.
    to: Option<Vec<PeerFields>>,
    ports: Option<Vec<PortFields>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PeerFields {
    pod_selector: Option<SelectorFields>,
    namespace_selector: Option<SelectorFields>,
    ip_block: Option<BlockFields>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct BlockFields {
    cidr: String,
    except: Option<Vec<String>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PortFields {
    protocol: Option<String>,
    port: Option<NumberOrName>,
    end_port: Option<i64>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum NumberOrName {
    Number(i64),
    Name(String),
}

impl NetworkPolicy {
    pub fn parse(meta: &Meta<'_>, fields: &PolicyFields) -> Self {
        let everybody = SelectorFields::default();
        let selector = Selector::parse(fields.pod_selector.as_ref().unwrap_or(&everybody));
        let mut read = Reader { bad: Vec::new(), size: Size::new(selector.as_ref().ok()) };
        let (about_ingress, about_egress) = read.types(fields);
        let mut rules = |is_wanted: bool, direction: Direction, rules: &Option<Vec<RuleFields>>| -> Option<Vec<Rule>> {
            is_wanted.then(|| {
                let rules = rules.iter().flatten().enumerate();
                rules.map(|(index, rule)| read.rule(&direction.field(index), rule, direction)).collect()
            })
        };
        let ingress = rules(about_ingress, Direction::Ingress, &fields.ingress);
        let egress = rules(about_egress, Direction::Egress, &fields.egress);
        let pods = read.or_report("spec.podSelector", selector);
        read.report_names(pods.as_ref(), ingress.as_deref().unwrap_or_default());
        Self {
            uid: meta.uid.into(),
            created: meta.created,
            pods,
            ingress,
            egress,
            stateless: meta.annotations.get(keys::ACL_STATELESS).is_some_and(|value| value == "true"),
            most_numbers: read.size.most_numbers(),
            need: read.size.need(),
            bad: read.bad,
        }
    }
}

struct Reader {
    bad: Vec<BadField>,
    size: Size,
}

impl Reader {
    fn report(&mut self, field: &str, problem: impl Display) {
        if self.bad.len() < MOST_REPORTED {
            self.bad.push(BadField::new(field, format!("{problem}; it selects nothing")));
        }
    }

    fn or_report<T, E: Display>(&mut self, field: &str, result: Result<T, E>) -> Option<T> {
        result.map_err(|problem| self.report(field, problem)).ok()
    }

    /// Reports named ports that cannot be looked up in the pods that the policy selects.
    fn report_names(&mut self, pods: Option<&Selector>, ingress: &[Rule]) {
        if !pods.is_some_and(Selector::is_long) {
            return;
        }
        for (index, _) in ingress.iter().enumerate().filter(|(_, rule)| rule.named_ports().next().is_some()) {
            let problem = format!(
                "a name cannot be used with a podSelector of more than {LONGEST_TEXT} characters, the limit; \
                 write the number"
            );
            self.report(&format!("{}.ports", Direction::Ingress.field(index)), problem);
        }
    }

    /// The directions that the policy covers: those it names; by default ingress, and egress if it has rules for it.
    fn types(&mut self, fields: &PolicyFields) -> (bool, bool) {
        let types = fields.policy_types.as_deref().unwrap_or_default();
        if types.is_empty() {
            return (true, fields.egress.as_ref().is_some_and(|rules| !rules.is_empty()));
        }
        for other in types.iter().filter(|t| !["Ingress", "Egress"].contains(&t.as_str())) {
            self.report("spec.policyTypes", format!("{other:?} is not a policy type; write Ingress or Egress"));
        }
        (types.iter().any(|t| t == "Ingress"), types.iter().any(|t| t == "Egress"))
    }

    fn rule(&mut self, path: &str, fields: &RuleFields, direction: Direction) -> Rule {
        let (name, peers) = match &fields.from {
            Some(from) => ("from", from.as_slice()),
            None => ("to", fields.to.as_deref().unwrap_or_default()),
        };
        let ports = fields.ports.as_deref().unwrap_or_default();
        let (read_ports, bad_ports) = read_ports(ports);
        let counted = Ports::new(&read_ports);
        let is_beyond_selectors = peers.is_empty() || peers.iter().any(|peer| peer.ip_block.is_some());
        let fits = self.size.count_names(&counted, direction, is_beyond_selectors).and_then(|()| match peers {
            [] => self.size.count_everybody(&counted),
            _ if peers.iter().any(|peer| peer.ip_block.is_none()) => self.size.count_selected(&counted),
            _ => Ok(()),
        });
        let fits = self.or_report(path, fits).is_some();
        let mut blocks = 0;
        let mut peer = |(index, peer): (usize, &PeerFields)| {
            let (path, block) = (format!("{path}.{name}[{index}]"), blocks);
            blocks += u32::from(peer.ip_block.is_some());
            let read = self.peer(&path, peer, block)?;
            let fits = self.size.count(&read, &counted, direction);
            self.or_report(&path, fits).map(|()| read)
        };
        let read = peers.iter().enumerate().filter(|_| fits).filter_map(&mut peer).collect();
        for (index, problem) in bad_ports {
            self.report(&format!("{path}.ports[{index}]"), problem);
        }
        let is_for_all = peers.is_empty() && fits;
        Rule { peers: (!is_for_all).then_some(read), ports: (!ports.is_empty()).then_some(read_ports) }
    }

    fn peer(&mut self, path: &str, peer: &PeerFields, index: u32) -> Option<Peer> {
        let result = match (&peer.ip_block, &peer.namespace_selector, &peer.pod_selector) {
            (Some(block), None, None) => read_block(block, index).map(Peer::Block),
            (None, Some(namespaces), None) => read_selector("namespaceSelector", namespaces).map(Peer::Namespaces),
            (None, namespaces, Some(pods)) => read_pods(namespaces.as_ref(), pods),
            (None, None, None) => Err("it needs podSelector, namespaceSelector or ipBlock".to_owned()),
            (Some(_), ..) => Err("ipBlock cannot be combined with selectors; write them as another peer".to_owned()),
        };
        self.or_report(path, result)
    }
}

fn read_pods(namespaces: Option<&SelectorFields>, pods: &SelectorFields) -> Result<Peer, String> {
    let namespaces = namespaces.map(|fields| read_selector("namespaceSelector", fields)).transpose()?;
    Ok(Peer::Pods { namespaces, pods: read_selector("podSelector", pods)? })
}

fn read_selector(field: &str, fields: &SelectorFields) -> Result<Selector, String> {
    let selector = Selector::parse(fields).map_err(|e| format!("{field}.{e}"))?;
    if selector.is_long() {
        return Err(format!(
            "{field} has more than {LONGEST_TEXT} characters, the limit for keys and values; \
             divide it among several peers"
        ));
    }
    Ok(selector)
}

fn read_block(fields: &BlockFields, index: u32) -> Result<Block, String> {
    let cidr = |field: &str, text: &str| -> Result<Subnet, String> {
        let net = decimal::<ipnetwork::IpNetwork>(text)
            .ok()
            .filter(|_| text.contains('/'))
            .ok_or_else(|| format!("ipBlock.{field}: {text:?} is not a CIDR such as 192.0.2.0/24"))?;
        // OVN accepts no block with bits set beyond its prefix length
        Ok(Subnet::of(net))
    };
    let block = cidr("cidr", &fields.cidr)?;
    let mut except = Vec::new();
    for text in fields.except.iter().flatten() {
        let other = cidr("except", text)?;
        if other == block || !block.contains_subnet(other) {
            return Err(format!(
                "ipBlock.except: {other} is not a smaller range inside {block}; correct it or leave it out"
            ));
        }
        except.push(other);
    }
    Ok(Block { index, cidr: block, except })
}

/// The ports that can be parsed, and the index and problem of each of the others.
fn read_ports(fields: &[PortFields]) -> (Vec<PolicyPort>, Vec<(usize, String)>) {
    let (mut ports, mut bad) = (Vec::new(), Vec::new());
    for (index, port) in fields.iter().enumerate() {
        match read_port(port) {
            Ok(port) => ports.push(port),
            Err(problem) => bad.push((index, problem)),
        }
    }
    (ports, bad)
}

fn read_port(fields: &PortFields) -> Result<PolicyPort, String> {
    let protocol = Protocol::parse(fields.protocol.as_deref())?;
    let end = fields.end_port;
    match &fields.port {
        None if end.is_some() => Err("endPort needs port".to_owned()),
        None => Ok(PolicyPort::All(protocol)),
        Some(NumberOrName::Name(name)) if end.is_some() => Err(format!("endPort needs a number, port is {name:?}")),
        Some(NumberOrName::Name(name)) => {
            if is_port_name(name) {
                return Ok(PolicyPort::Named(protocol, name.as_str().into()));
            }
            Err(format!("port: {name:?} is not the name of a port: lower case, digits and -, at most 15"))
        }
        Some(NumberOrName::Number(number)) => {
            let first = read_number("port", *number)?;
            let last = end.map_or(Ok(first), |end| read_number("endPort", end))?;
            if last < first {
                return Err(format!("endPort {last} is less than port {first}"));
            }
            Ok(PolicyPort::Numbers(protocol, first, last))
        }
    }
}

fn read_number(field: &str, number: i64) -> Result<u16, String> {
    let number = u16::try_from(number).ok().filter(|n| *n > 0);
    number.ok_or_else(|| format!("{field} is not a number from 1 to 65535"))
}

fn is_port_name(name: &str) -> bool {
    let edge = |b: Option<&u8>| b.is_some_and(|b| *b != b'-');
    let bytes = name.as_bytes();
    name.len() <= LONGEST_PORT_NAME
        && edge(bytes.first())
        && edge(bytes.last())
        && bytes.iter().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || *b == b'-')
}
