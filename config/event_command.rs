//! The words of `ovnkube event`.

use crate::Error;

/// What a container of a pod says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventCommand {
    pub about: EventAbout,
    /// The node that it is on.
    pub node: String,
    pub message: String,
    pub reason: EventReason,
}

/// Reasons that the image's entrypoint has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum EventReason {
    #[default]
    ContainerEnded,
    DatabaseDiskFull,
}

impl EventReason {
    const ALL: [Self; 2] = [Self::ContainerEnded, Self::DatabaseDiskFull];

    pub fn name(self) -> &'static str {
        match self {
            Self::ContainerEnded => "ContainerEnded",
            Self::DatabaseDiskFull => "DatabaseDiskFull",
        }
    }

    fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.name() == name)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventAbout {
    Pod { namespace: String, name: String, uid: String },
    Node,
}

/// The words after `event`.
pub(crate) fn parse<'a>(words: &mut impl Iterator<Item = &'a str>) -> Result<EventCommand, Error> {
    const WANTED: &str = "write ovnkube event pod NAMESPACE/NAME UID NODE MESSAGE, or ovnkube event node NODE MESSAGE; a reason may \
                          follow, ContainerEnded or DatabaseDiskFull";
    let wrong = |what: &str| Error::Usage(format!("event {what}; {WANTED}"));
    let of = words.next();
    let mut word = |what: &str| {
        words.next().filter(|word| !word.is_empty()).map(str::to_owned).ok_or_else(|| wrong(&format!("needs {what}")))
    };
    let about = match of {
        Some("pod") => {
            let pod = word("a pod")?;
            let names = pod.split_once('/').filter(|(namespace, name)| !namespace.is_empty() && !name.is_empty());
            let (namespace, name) = names.ok_or_else(|| wrong(&format!("{pod:?} is no pod")))?;
            let (namespace, name) = (namespace.to_owned(), name.to_owned());
            EventAbout::Pod { namespace, name, uid: word("the pod's uid")? }
        }
        Some("node") => EventAbout::Node,
        _ => return Err(wrong("needs to know what it is about")),
    };
    let (node, message) = (word("the node's name")?, word("a message")?);
    let reason = match words.next() {
        Some(name) => EventReason::parse(name).ok_or_else(|| wrong(&format!("has no reason {name:?}")))?,
        None => EventReason::default(),
    };
    Ok(EventCommand { about, node, message, reason })
}
