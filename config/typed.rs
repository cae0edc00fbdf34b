//! The macro that makes typed structs of the list of settings.

/// Makes the typed structs, `Settings` and the table `SETTINGS` from one list.
///
/// Per section: `/// heading`, `field: Struct, "ini section" { rows }`.
/// Per row: `/// help`, `field: Type { attribute: value, … }`.
macro_rules! settings {
    ($(
        #[doc = $heading:literal]
        $group:ident: $Group:ident, $section:literal {
            $( #[doc = $help:literal] $field:ident: $Type:ty { $($attribute:ident: $value:expr),* $(,)? } )*
        }
    )*) => {
        $(
            #[doc = $heading]
            #[derive(Debug, Clone, PartialEq)]
            // fields are named like their keys
            #[allow(clippy::struct_excessive_bools, clippy::struct_field_names)]
            pub struct $Group { $( #[doc = $help] pub $field: $Type, )* }
        )*

        /// All settings, checked, with defaults filled in.
        #[derive(Debug, Clone, PartialEq)]
        pub struct Settings {
            /// Which parts of ovnkube run in this process.
            pub mode: $crate::mode::Mode,
            /// How the Kubernetes API is reached.
            pub kube_access: $crate::access::KubeAccess,
            /// How the northbound database is reached.
            pub nb: $crate::database::Database,
            /// How the southbound database is reached.
            pub sb: $crate::database::Database,
            /// The pods' MTU was set; otherwise each node derives it from its uplink.
            pub mtu_is_given: bool,
            $( #[doc = $heading] pub $group: $Group, )*
        }

        impl Settings {
            /// Converts every value of the table to its type, row by row in the order of the table.
            pub(crate) fn resolve(layered: &$crate::layers::Layered) -> Result<Self, $crate::error::Error> {
                let mut rows = SETTINGS.iter();
                Ok(Self {
                    mode: $crate::mode::Mode::default(),
                    kube_access: $crate::access::KubeAccess::default(),
                    nb: $crate::database::Database::default(),
                    sb: $crate::database::Database::default(),
                    mtu_is_given: layered.get("default", "mtu").is_some_and(|one| one.source != $crate::source::Source::Default),
                    $( $group: $Group { $( $field: layered.typed(rows.next())?, )* }, )*
                })
            }
        }

        /// Every setting, in the order of help and docs.
        pub static SETTINGS: &[$crate::table::Setting] = &[ $( $(
            $crate::table::Setting {
                section: $section,
                help: $help,
                kind: <$Type as $crate::values::FromText>::KIND,
                $( $attribute: $value, )*
                ..$crate::table::Setting::BLANK
            },
        )* )* ];

        /// Headings of the sections: `(INI section, heading)`, in the order of help and docs.
        pub static HEADINGS: &[(&str, &str)] = &[ $( ($section, $heading), )* ];
    };
}
pub(crate) use settings;
