/// Standard deviations on the log scale.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// Of the latency of every request.
    pub level: f64,
    /// Of the slow path alone, on top.
    pub tail: f64,
}

/// How a machine disturbs a measurement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct World {
    /// Short name.
    pub name: &'static str,
    /// Between sessions: another host, another life of the server.
    pub session: Spread,
    /// Probability of a slow host, and by how much it is slower.
    pub slow_host: (f64, Spread),
    /// The machine's state, an Ornstein-Uhlenbeck process of 20 s common to both sides.
    pub machine: Spread,
    /// Independent from one run of 20 s to the next.
    pub run: Spread,
    /// Bursts of other load a second, each .25 to .75 s long.
    pub bursts: f64,
    /// By how much a burst multiplies latency.
    pub burst_factor: f64,
}

const fn spread(level: f64, tail: f64) -> Spread {
    Spread { level, tail }
}

impl World {
    /// A dedicated machine.
    pub const QUIET: Self = Self {
        name: "quiet",
        session: spread(0.003, 0.012),
        slow_host: (0.0, spread(0.0, 0.0)),
        machine: spread(0.004, 0.015),
        run: spread(0.004, 0.012),
        bursts: 0.01,
        burst_factor: 1.3,
    };

    /// A machine that other work shares.
    pub const SHARED: Self = Self {
        name: "shared",
        session: spread(0.010, 0.025),
        slow_host: (0.0, spread(0.0, 0.0)),
        machine: spread(0.020, 0.060),
        run: spread(0.006, 0.030),
        bursts: 0.04,
        burst_factor: 1.5,
    };

    /// A hosted virtual machine, another one each time.
    pub const HOSTED: Self = Self {
        name: "hosted",
        session: spread(0.020, 0.040),
        slow_host: (0.3, spread(0.12, 0.10)),
        machine: spread(0.030, 0.090),
        run: spread(0.010, 0.045),
        bursts: 0.06,
        burst_factor: 1.6,
    };

    /// All of them, from calm to rough.
    pub const ALL: [Self; 3] = [Self::QUIET, Self::SHARED, Self::HOSTED];
}
