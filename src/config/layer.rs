//! One level of settings (a file, an environment section, a scenario, the flags), each value with
//! its origin, and how levels lie on each other. The tables below are the schema of `[server]`,
//! `[gate]`, `[measure]` and `[reference]`: key, type, reader, default.

use std::fmt;
use std::time::Duration;

use toml::de::DeValue;

use super::error::{Place, Problem};
use super::limits::Limits;
use super::{read, show::Show, text};
use crate::data::{Auto, Fraction, Mode, OnInconclusive, OnMissing, Policy, Rule, Tls};

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Nobody said anything.
    Default,
    /// A line of a file.
    File(Place),
    /// An environment variable.
    Variable(&'static str),
    /// A flag of the command line.
    Flag(&'static str),
    /// Found on the machine or at the server.
    Detected,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(place) => write!(f, "{place}"),
            Self::Variable(name) | Self::Flag(name) => f.write_str(name),
            Self::Detected => f.write_str("detected"),
        }
    }
}

/// A value and where it came from.
#[derive(Debug, Clone)]
pub(crate) struct At<T> {
    pub value: T,
    pub origin: Origin,
}

/// Who loads the models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ModelControl {
    /// Not the gate: they are there.
    None,
    /// The gate loads a model before its scenarios and unloads it after.
    Explicit,
}

/// A row of an explanation before it gets its section's name: key, value, origin.
pub(crate) type Row = (String, String, Origin);

/// A level of settings of one section.
pub(crate) trait Layer: Default + Clone {
    /// Takes a key of the file; none where the key is not of this section.
    fn take(
        &mut self,
        key: &str,
        value: &DeValue<'_>,
        origin: &Origin,
    ) -> Option<Result<(), Problem>>;
    /// The keys, for messages.
    fn keys() -> Vec<String>;
    /// Lays this level over a lower one.
    fn over(self, lower: &Self) -> Self;
}

macro_rules! layer {
    ($(#[$doc:meta])* $layer:ident => $settled:ident {
        $($field:ident: $type:ty = $read:expr, $default:expr;)*
    }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Default)]
        pub(crate) struct $layer {
            $(pub $field: Option<At<$type>>,)*
        }

        /// The same with every default in place.
        #[derive(Debug, Clone)]
        pub(crate) struct $settled {
            $(pub $field: At<$type>,)*
        }

        impl Layer for $layer {
            fn take(
                &mut self,
                key: &str,
                value: &DeValue<'_>,
                origin: &Origin,
            ) -> Option<Result<(), Problem>> {
                match key {
                    $(stringify!($field) => Some($read(value).map(|value| {
                        self.$field = Some(At { value, origin: origin.clone() });
                    })),)*
                    _ => None,
                }
            }

            fn keys() -> Vec<String> {
                vec![$(stringify!($field).to_owned()),*]
            }

            fn over(self, lower: &Self) -> Self {
                Self { $($field: self.$field.or_else(|| lower.$field.clone()),)* }
            }
        }

        impl $layer {
            /// Puts defaults where nobody said anything.
            pub fn settle(self) -> $settled {
                $settled {
                    $($field: self.$field.unwrap_or_else(|| At {
                        value: $default,
                        origin: Origin::Default,
                    }),)*
                }
            }
        }

        impl $settled {
            /// Every value in words, with its origin.
            pub fn rows(&self) -> Vec<Row> {
                vec![$((
                    stringify!($field).to_owned(),
                    self.$field.value.show(),
                    self.$field.origin.clone(),
                )),*]
            }
        }
    };
}

layer! {
    /// `[server]` but for its metadata.
    ServerKeys => ServerSettled {
        url: String = |value| text::address(read::text(value, ADDRESS)?), "localhost:8001".to_owned();
        metrics_url: Option<String> = |value| read::optional(value, ADDRESS, text::address), None;
        tls: Option<Tls> = read::tls, None;
        launch: Vec<String> = read::command, Vec::new();
        stop: Vec<String> = read::command, Vec::new();
        model_control: ModelControl = read::model_control, ModelControl::None;
    }
}

layer! {
    /// `[gate]` but for its limits.
    GateKeys => GateSettled {
        mode: Mode = read::mode, Mode::Enforce;
        false_alarm: Fraction = read::probability, Fraction::new(0.01);
        missed_regression: Fraction = read::probability, Fraction::new(0.05);
        budget: Duration = read::duration_above_zero, Duration::from_mins(5);
        on_inconclusive: OnInconclusive = read::on_inconclusive, OnInconclusive::Report;
        on_missing: OnMissing = read::on_missing, OnMissing::Fail;
        rule: Rule = read::rule, Rule::Evidence;
        policy: Policy = read::policy, Policy::Enforce;
        assumed_noise: Option<(f64, f64)> = read::assumed_noise, None;
        suspicious_gain: Fraction = read::rise, Fraction::new(0.25);
    }
}

layer! {
    /// `[measure]`.
    Measure => MeasureSettled {
        warmup: Auto<Duration> = read::auto_duration, Auto::Auto;
        block: Auto<Duration> = read::auto_duration_above_zero, Auto::Auto;
        connections: Auto<u32> = read::auto_count, Auto::Auto;
        workers: Auto<u32> = read::auto_count, Auto::Auto;
        request_timeout: Duration = read::duration_above_zero, Duration::from_secs(30);
        max_error_rate: Fraction = read::share, Fraction::new(0.0);
        allow_saturated: bool = read::boolean, false;
        seed: u64 = read::seed, 0;
    }
}

layer! {
    /// `[reference]`.
    Reference => ReferenceSettled {
        url: Option<String> = |value| read::optional(value, ADDRESS, text::address), None;
        model: Option<String> = |value| read::optional(value, MODEL, text::model), None;
        version: Option<String> = |value| read::optional(value, VERSION, text::version), None;
        launch: Vec<String> = read::command, Vec::new();
        stop: Vec<String> = read::command, Vec::new();
    }
}

const ADDRESS: &str = "an address as text, like \"localhost:8001\"";
pub(crate) const MODEL: &str = "the name of a model as text";
pub(crate) const VERSION: &str = "a model version as text, like \"2\"";

/// `[gate]`: plain keys and limits. What holds for the whole check is elsewhere.
#[derive(Debug, Clone, Default)]
pub(crate) struct Gate {
    pub keys: GateKeys,
    pub limits: Limits,
}

impl Layer for Gate {
    fn take(
        &mut self,
        key: &str,
        value: &DeValue<'_>,
        origin: &Origin,
    ) -> Option<Result<(), Problem>> {
        self.keys
            .take(key, value, origin)
            .or_else(|| self.limits.take(key, value, origin))
    }

    fn keys() -> Vec<String> {
        let mut keys = GateKeys::keys();
        keys.extend(Limits::keys());
        keys
    }

    fn over(self, lower: &Self) -> Self {
        Self {
            keys: self.keys.over(&lower.keys),
            limits: self.limits.over(&lower.limits),
        }
    }
}

/// `[server]`: plain keys and metadata. Metadata is laid over entry by entry.
#[derive(Debug, Clone, Default)]
pub(crate) struct Server {
    pub keys: ServerKeys,
    /// Entries in the file's order; the values as written, variables not yet replaced.
    pub metadata: Vec<(String, At<String>)>,
}

impl Server {
    fn take_metadata(&mut self, value: &DeValue<'_>, origin: &Origin) -> Result<(), Problem> {
        let table = value
            .as_table()
            .ok_or_else(|| read::wrong(value, METADATA))?;
        for (name, value) in table {
            let name = name.get_ref().as_ref();
            let template =
                metadata_entry(name, value.get_ref()).map_err(|problem| Problem::Entry {
                    name: name.to_owned(),
                    problem: Box::new(problem),
                })?;
            self.metadata.push((
                name.to_owned(),
                At {
                    value: template.to_owned(),
                    origin: origin.clone(),
                },
            ));
        }
        Ok(())
    }
}

const METADATA: &str = "a table of texts, like { authorization = \"Bearer ${TRITON_TOKEN}\" }";

/// Checks one entry of the metadata; the variables are asked only when the entry is used.
fn metadata_entry<'a>(name: &str, value: &'a DeValue<'_>) -> Result<&'a str, Problem> {
    text::metadata_name(name)?;
    let template = read::text(value, METADATA)?;
    text::expand(template, &|_| Some(String::new()))?;
    Ok(template)
}

impl Layer for Server {
    fn take(
        &mut self,
        key: &str,
        value: &DeValue<'_>,
        origin: &Origin,
    ) -> Option<Result<(), Problem>> {
        if key == "metadata" {
            return Some(self.take_metadata(value, origin));
        }
        self.keys.take(key, value, origin)
    }

    fn keys() -> Vec<String> {
        let mut keys = ServerKeys::keys();
        keys.push("metadata".to_owned());
        keys
    }

    fn over(self, lower: &Self) -> Self {
        let mut metadata = lower.metadata.clone();
        for (name, value) in self.metadata {
            match metadata.iter_mut().find(|(known, _)| *known == name) {
                Some((_, slot)) => *slot = value,
                None => metadata.push((name, value)),
            }
        }
        Self {
            keys: self.keys.over(&lower.keys),
            metadata,
        }
    }
}
