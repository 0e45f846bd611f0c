//! The table of all flags of kube-apiserver 1.36.3, by the sections of its help: their types, defaults, and effect
//! here.

mod access;
mod auditing;
mod generic;
mod misc;
mod others;
mod own;
mod serving;
mod storage;

/// The type of a flag's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A truth value; a flag without one is true.
    Bool,
    /// A whole number.
    Int,
    /// A number.
    Float,
    /// A number of 32 bits.
    Float32,
    /// A span of time.
    Duration,
    /// An IP address.
    Ip,
    /// Any text.
    Text,
    /// Texts, separated by commas; several flags add up.
    Strings,
    /// A text; several flags add up.
    Texts,
    /// `key=value`, separated by commas; several flags add up.
    Pairs,
    /// `key=value` or `key`, separated by commas; several flags add up.
    Settings,
    /// Names of features with truth values.
    Gates,
    /// `label=values`, separated by commas; a part with commas is quoted.
    Labels,
    /// First and last port.
    PortRange,
    /// An amount.
    Quantity,
    /// The verbosity of the log.
    Level,
    /// Whole numbers, separated by commas.
    Integers,
    /// Files of a certificate and its key, and names.
    NamedKeys,
    /// Patterns of files.
    Patterns,
    /// A version to show, or `raw`.
    Version,
}

impl Kind {
    /// Returns the name of the type in the help; empty for a truth value.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bool => "",
            Self::Int => "int",
            Self::Float => "float",
            Self::Float32 => "float32",
            Self::Duration => "duration",
            Self::Ip => "ip",
            Self::Text => "string",
            Self::Strings => "strings",
            Self::Texts => "stringArray",
            Self::Pairs | Self::Settings => "mapStringString",
            Self::Gates => "colonSeparatedMultimapStringString",
            Self::Labels => "stringToString",
            Self::PortRange => "portRange",
            Self::Quantity => "quantity",
            Self::Level => "Level",
            Self::Integers => "int32Slice",
            Self::NamedKeys => "namedCertKey",
            Self::Patterns => "pattern=N,...",
            Self::Version => "version[=true]",
        }
    }

    /// Returns the value of a flag that is given without one. `None` if the flag needs a value.
    pub const fn alone(self) -> Option<&'static str> {
        match self {
            Self::Bool | Self::Version => Some("true"),
            _ => None,
        }
    }

    /// Returns whether the values of several flags add up.
    pub const fn is_list(self) -> bool {
        matches!(
            self,
            Self::Strings
                | Self::Texts
                | Self::Pairs
                | Self::Settings
                | Self::Gates
                | Self::Labels
                | Self::Integers
                | Self::NamedKeys
                | Self::Patterns
        )
    }
}

/// The effect of a flag here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlagEffect {
    /// It has the effect that it has in Kubernetes.
    Acts,
    /// It is accepted and changes nothing, as users expect.
    Accepted,
    /// It is accepted, and the server logs its own behaviour.
    Logged(&'static str),
    /// The server does not start, because ignoring the flag would be dangerous or would help nobody.
    Refused(&'static str),
    /// It is a flag of this server, not of Kubernetes.
    Own,
}

/// A flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flag {
    /// Its name, without the dashes.
    pub name: &'static str,
    /// Its letter, if it has one.
    pub short: Option<char>,
    /// The type of its value.
    pub kind: Kind,
    /// Its default; may be empty.
    pub default: &'static str,
    /// Its description.
    pub help: &'static str,
    /// Its effect here.
    pub effect: FlagEffect,
}

/// Flags under one title.
#[derive(Debug, Clone, Copy)]
pub struct Section {
    /// The title.
    pub title: &'static str,
    /// The flags, by name.
    pub flags: &'static [Flag],
}

/// All flags.
pub static SECTIONS: [Section; 16] = [
    generic::GENERIC,
    storage::ETCD,
    serving::SECURE_SERVING,
    auditing::AUDITING,
    auditing::FEATURES,
    access::AUTHENTICATION,
    access::AUTHORIZATION,
    others::API_ENABLEMENT,
    others::EGRESS_SELECTOR,
    others::ADMISSION,
    others::METRICS,
    others::LOGS,
    others::TRACES,
    misc::MISC,
    own::FLOTILLA,
    misc::GLOBAL,
];

/// Returns all flags, in the order of their sections.
pub fn flags() -> impl Iterator<Item = &'static Flag> {
    SECTIONS.iter().flat_map(|section| section.flags)
}

/// Returns the flag of a name. `None` if there is none.
pub fn find(name: &str) -> Option<&'static Flag> {
    flags().find(|flag| flag.name == name)
}

const fn flag(name: &'static str, kind: Kind, default: &'static str, help: &'static str, effect: FlagEffect) -> Flag {
    Flag { name, short: None, kind, default, help, effect }
}

const fn acts(name: &'static str, kind: Kind, default: &'static str, help: &'static str) -> Flag {
    flag(name, kind, default, help, FlagEffect::Acts)
}

const fn accepted(name: &'static str, kind: Kind, default: &'static str, help: &'static str) -> Flag {
    flag(name, kind, default, help, FlagEffect::Accepted)
}

const fn logged(name: &'static str, kind: Kind, default: &'static str, help: &'static str, why: &'static str) -> Flag {
    flag(name, kind, default, help, FlagEffect::Logged(why))
}

const fn refused(name: &'static str, kind: Kind, default: &'static str, help: &'static str, why: &'static str) -> Flag {
    flag(name, kind, default, help, FlagEffect::Refused(why))
}

const fn own(name: &'static str, kind: Kind, default: &'static str, help: &'static str) -> Flag {
    flag(name, kind, default, help, FlagEffect::Own)
}
