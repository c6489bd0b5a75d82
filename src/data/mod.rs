//! Plain types that every room shares: no I/O, no clock, no judgement.

mod block;
mod facts;
mod fraction;
mod gate_change;
mod input_data;
mod limit;
mod metric;
mod result;
mod scenario;
mod session;
mod value;

pub use block::{
    Block, ClientSide, ErrorClass, ErrorCounts, GpuSample, Latency, ServerMeans, Side,
};
pub use facts::{Difference, Facts};
pub use fraction::{Fraction, ParseFractionError};
pub use gate_change::{GateChange, GateChangeKind, GateChanges, GateSide};
pub use input_data::{Content, FileContent, InputData, InputFile, Step, TensorData, Texts};
pub use limit::{Bound, Limit};
pub use metric::{Direction, Metric};
pub use result::{
    BaselineKind, BaselineUsed, Breakdown, CheckResult, Flag, GpuUsed, MetricResult, MetricVerdict,
    RESULT_SCHEMA, Reason, ScenarioResult, SideBreakdown, SubjectChange, Tool, Verdict,
};
pub use scenario::{
    Auto, DataSource, GateSpec, InputSpec, Load, MeasureSpec, Mode, OnInconclusive, OnMissing,
    Policy, Rule, Scenario, Secret, ServerSpec, Tls,
};
pub use session::{LoadIdentity, SESSION_SCHEMA, Session};
pub use value::Value;
