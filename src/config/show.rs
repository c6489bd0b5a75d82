//! Values in the words of a thresholds file, for explanations.

use std::time::Duration;

use super::layer::ModelControl;
use super::text::show_duration;
use crate::data::{Auto, Fraction, Mode, OnInconclusive, OnMissing, Policy, Rule, Tls};

/// What stands for "nothing was said and there is no default".
const NONE: &str = "-";

/// A value as a file would write it, without quotes.
pub(crate) trait Show {
    fn show(&self) -> String;
}

impl Show for String {
    fn show(&self) -> String {
        self.clone()
    }
}

impl Show for bool {
    fn show(&self) -> String {
        self.to_string()
    }
}

impl Show for u32 {
    fn show(&self) -> String {
        self.to_string()
    }
}

impl Show for u64 {
    fn show(&self) -> String {
        self.to_string()
    }
}

impl Show for Fraction {
    fn show(&self) -> String {
        self.to_string()
    }
}

impl Show for Duration {
    fn show(&self) -> String {
        show_duration(*self)
    }
}

impl<T: Show> Show for Option<T> {
    fn show(&self) -> String {
        self.as_ref().map_or_else(|| NONE.to_owned(), Show::show)
    }
}

impl<T: Show> Show for Auto<T> {
    fn show(&self) -> String {
        match self {
            Self::Auto => "auto".to_owned(),
            Self::Fixed(value) => value.show(),
        }
    }
}

impl Show for Vec<String> {
    fn show(&self) -> String {
        if self.is_empty() {
            NONE.to_owned()
        } else {
            self.join(" ")
        }
    }
}

impl Show for (f64, f64) {
    fn show(&self) -> String {
        format!(
            "throughput {}, latency {}",
            Fraction::new(self.0),
            Fraction::new(self.1)
        )
    }
}

impl Show for Tls {
    fn show(&self) -> String {
        let path = |path: &Option<std::path::PathBuf>| {
            path.as_ref().map(|path| path.display().to_string())
        };
        let parts: Vec<String> = [
            ("ca", path(&self.ca)),
            ("cert", path(&self.cert)),
            ("key", path(&self.key)),
            ("domain", self.domain.clone()),
        ]
        .into_iter()
        .filter_map(|(name, value)| value.map(|value| format!("{name} {value}")))
        .collect();
        if parts.is_empty() {
            "system certificates".to_owned()
        } else {
            parts.join(", ")
        }
    }
}

impl Show for Mode {
    fn show(&self) -> String {
        match self {
            Self::Enforce => "enforce",
            Self::Advise => "advise",
        }
        .to_owned()
    }
}

impl Show for Rule {
    fn show(&self) -> String {
        match self {
            Self::Evidence => "evidence",
            Self::Point => "point",
        }
        .to_owned()
    }
}

impl Show for Policy {
    fn show(&self) -> String {
        match self {
            Self::Enforce => "enforce",
            Self::Detect => "detect",
        }
        .to_owned()
    }
}

impl Show for OnInconclusive {
    fn show(&self) -> String {
        match self {
            Self::Report => "report",
            Self::Fail => "fail",
            Self::Pass => "pass",
        }
        .to_owned()
    }
}

impl Show for OnMissing {
    fn show(&self) -> String {
        match self {
            Self::Fail => "fail",
            Self::New => "new",
        }
        .to_owned()
    }
}

impl Show for ModelControl {
    fn show(&self) -> String {
        match self {
            Self::None => "none",
            Self::Explicit => "explicit",
        }
        .to_owned()
    }
}
