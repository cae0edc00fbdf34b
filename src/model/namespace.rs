//! Namespaces.

use serde::{Deserialize, Serialize};

use crate::{BadAnnotation, Labels, Meta, Name, keys};

/// The fields of a namespace that matter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Namespace {
    pub uid: Name,
    /// Creation, seconds since 1970.
    #[serde(default)]
    pub created: i64,
    pub labels: Labels,
    /// Its pods may send multicast to each other.
    pub multicast: bool,
    pub acl_logging: AclLogging,
    pub bad: Vec<BadAnnotation>,
}

/// The severities with which the policies of a namespace log what they allow and what they drop; `None` logs
/// nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AclLogging {
    pub allow: Option<AclSeverity>,
    pub deny: Option<AclSeverity>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AclSeverity {
    Alert,
    Warning,
    Notice,
    Info,
    Debug,
}

impl AclSeverity {
    /// As OVN spells it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Alert => "alert",
            Self::Warning => "warning",
            Self::Notice => "notice",
            Self::Info => "info",
            Self::Debug => "debug",
        }
    }

    fn parse(text: &str) -> Result<Option<Self>, String> {
        let all = [Self::Alert, Self::Warning, Self::Notice, Self::Info, Self::Debug];
        match all.into_iter().find(|severity| severity.name() == text) {
            None if !text.is_empty() => {
                Err(format!("{text:?} is not a severity; write alert, warning, notice, info or debug"))
            }
            severity => Ok(severity),
        }
    }
}

/// The annotation: `{"deny":"alert","allow":"notice"}`.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Said {
    allow: String,
    deny: String,
}

impl Namespace {
    pub fn parse(meta: &Meta<'_>) -> Self {
        let mut bad = Vec::new();
        let acl_logging = meta.annotations.get(keys::ACL_LOGGING).map(|text| acl_logging(text, &mut bad));
        Self {
            uid: meta.uid.into(),
            created: meta.created,
            labels: meta.labels.into(),
            multicast: meta.annotations.get(keys::MULTICAST).is_some_and(|value| value == "true"),
            acl_logging: acl_logging.unwrap_or_default(),
            bad,
        }
    }
}

fn acl_logging(text: &str, bad: &mut Vec<BadAnnotation>) -> AclLogging {
    if text.is_empty() {
        return AclLogging::default();
    }
    let said: Said = serde_json::from_str(text).unwrap_or_else(|e| {
        let right = r#"{"deny":"alert","allow":"notice"}"#;
        bad.push(BadAnnotation::new(
            keys::ACL_LOGGING,
            format!("it does not have the form {right}: {e}; nothing is logged"),
        ));
        Said::default()
    });
    let mut severity = |name: &str, text: &str| {
        let result = AclSeverity::parse(text);
        result.unwrap_or_else(|problem| {
            bad.push(BadAnnotation::new(keys::ACL_LOGGING, format!("{name}: {problem}; this is not logged")));
            None
        })
    };
    AclLogging { allow: severity("allow", &said.allow), deny: severity("deny", &said.deny) }
}
