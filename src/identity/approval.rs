//! What becomes of a CertificateSigningRequest, as a pure function: a node may ask for the certificate of its own agent, and for
//! nothing else.
//!
//! ```text
//!  request ─▶ not decided yet? one text, for an agent? ─▶ who asks ─▶ whose name, which rights, how long ─▶ approved, or denied and why
//! ```

use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use ovnkube_watch::Verdict;
use pem::Pem;
use rustls::pki_types::CertificateSigningRequestDer;
use rustls::pki_types::pem::PemObject;
use x509_cert::der::Decode;
use x509_cert::request::CertReq;

use crate::key::{LINES, REQUEST};
use crate::names::{AGENTS, KUBELETS, SIGNER, USAGES, agent, agent_of, is_node_name, kubelet_of};

/// Groups that a node may have, by its certificate or by the API server.
const GROUPS: [&str; 3] = [KUBELETS, AGENTS, "system:authenticated"];
/// As ovn-kubernetes has it: a year, in seconds.
pub(crate) const LONGEST: i32 = 365 * 24 * 60 * 60;
/// Longest text of a request, in bytes; with the longest keys of RSA it has 4 kB.
const LONGEST_TEXT: usize = 16 * 1024;
/// Requests for names that begin so are ours to decide.
const OURS: &str = "CN=system:ovn-node";

/// The verdict on a request; `None` if it is somebody else's, or was decided already.
pub fn judge(request: &CertificateSigningRequest) -> Option<Verdict> {
    if request.spec.signer_name != SIGNER || is_decided(request) {
        return None;
    }
    let refusal = match der(&request.spec.request.0) {
        Ok(der) => refusal(request, &Asked::parse(&der).filter(Asked::is_for_agent)?),
        // another reader may find an agent's name in it, or any other
        Err(why) => node_of(request).map(|_| Some(why))?,
    };
    Some(match refusal {
        None => Verdict { is_approved: true, message: "a node asks for the certificate of its own agent".to_owned() },
        Some(message) => Verdict { is_approved: false, message },
    })
}

fn is_decided(request: &CertificateSigningRequest) -> bool {
    let Some(status) = &request.status else { return false };
    let decided = |kind: &str| matches!(kind, "Approved" | "Denied" | "Failed");
    status.certificate.is_some() || status.conditions.iter().flatten().any(|one| decided(&one.type_))
}

/// The part of a PKCS #10 request that matters.
struct Asked {
    /// Parts of the subject as `KEY=value`, sorted.
    subject: Vec<String>,
    /// Whether it has attributes: they can ask for alternative names.
    has_attributes: bool,
}

/// The PKCS #10 request, if the text has no other reading. The signer reads the text itself, and readers differ in what they skip and
/// where a block ends: in a text of two blocks it could find another request than the one judged here.
fn der(text: &[u8]) -> Result<CertificateSigningRequestDer<'static>, String> {
    if text.len() > LONGEST_TEXT {
        return Err(format!("the request has {} bytes; {LONGEST_TEXT} are the most", text.len()));
    }
    let is_usual = |der: &CertificateSigningRequestDer<'_>| {
        let usual = pem::encode_config(&Pem::new(REQUEST, der.as_ref()), LINES);
        text.strip_suffix(b"\n").unwrap_or(text) == usual.trim_end().as_bytes()
    };
    CertificateSigningRequestDer::from_pem_slice(text).ok().filter(is_usual).ok_or_else(|| {
        format!(
            "the text of the request is not one block {REQUEST:?} of PEM, in lines of 64 characters, and nothing else"
        )
    })
}

impl Asked {
    fn parse(der: &[u8]) -> Option<Self> {
        let request = CertReq::from_der(der).ok()?;
        let mut subject: Vec<String> = request.info.subject.iter().map(ToString::to_string).collect();
        subject.sort();
        Some(Self { subject, has_attributes: !request.info.attributes.is_empty() })
    }

    fn is_for_agent(&self) -> bool {
        self.subject.iter().any(|part| part.starts_with(OURS))
    }
}

fn user_of(request: &CertificateSigningRequest) -> &str {
    request.spec.username.as_deref().unwrap_or_default()
}

/// The node whose kubelet or agent asks, and the group that this one has.
fn node_of(request: &CertificateSigningRequest) -> Option<(&str, &'static str)> {
    let user = user_of(request);
    kubelet_of(user).map(|node| (node, KUBELETS)).or_else(|| Some((agent_of(user)?, AGENTS)))
}

/// Why the request is denied, or nothing.
fn refusal(request: &CertificateSigningRequest, asked: &Asked) -> Option<String> {
    let spec = &request.spec;
    let user = user_of(request);
    let groups: Vec<&str> = spec.groups.iter().flatten().map(String::as_str).collect();
    let Some((node, group)) = node_of(request) else {
        return Some(format!("{user} is neither a kubelet nor a node agent, which alone may ask for this name"));
    };
    if !is_node_name(node) {
        return Some(format!("{node:?} in the user {user:?} is no name of a Node"));
    }
    if !groups.contains(&group) || groups.iter().any(|group| !GROUPS.contains(group)) {
        return Some(format!(
            "{user} has the groups {}; it should have {group}, and no foreign one",
            groups.join(", ")
        ));
    }
    let mut usages: Vec<&str> = spec.usages.iter().flatten().map(String::as_str).collect();
    usages.sort_unstable();
    usages.dedup();
    if usages != USAGES {
        return Some(format!("the usages are {}; they should be {}", usages.join(", "), USAGES.join(", ")));
    }
    let wanted = [format!("CN={}", agent(node)), format!("O={AGENTS}")];
    if asked.subject != wanted {
        return Some(format!(
            "the subject is {}; that of the agent of {user} is {}",
            asked.subject.join(", "),
            wanted.join(", ")
        ));
    }
    if asked.has_attributes {
        return Some("it asks for extensions, such as alternative names; an agent has none".to_owned());
    }
    match spec.expiration_seconds {
        None => Some("it does not say for how long the certificate shall be valid (expirationSeconds)".to_owned()),
        Some(seconds) if seconds > LONGEST => {
            Some(format!("it asks for {seconds} s (expirationSeconds); {LONGEST} s are the most"))
        }
        Some(_) => None,
    }
}
