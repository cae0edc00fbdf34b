use ovnkube_model::Object;

/// A problem on the node to report as an Event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// The object it is about; `None`: the own Node.
    pub about: Option<Object>,
    /// The Event's reason, such as `MtuTooLarge`.
    pub reason: &'static str,
    /// What is wrong, and what to do.
    pub message: String,
}
