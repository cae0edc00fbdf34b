//! The words of `ovnkube event`.

use crate::Error;

/// What a container of a pod says before it ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventCommand {
    pub about: EventAbout,
    /// The node that it is on.
    pub node: String,
    pub message: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventAbout {
    Pod { namespace: String, name: String, uid: String },
    Node,
}

/// The words after `event`.
pub(crate) fn parse<'a>(words: &mut impl Iterator<Item = &'a str>) -> Result<EventCommand, Error> {
    const WANTED: &str = "write ovnkube event pod NAMESPACE/NAME UID NODE MESSAGE, or ovnkube event node NODE MESSAGE";
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
    Ok(EventCommand { about, node: word("the node's name")?, message: word("a message")? })
}
