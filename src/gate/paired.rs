use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::data::{Block, Bound, Flag, Limit, MetricResult, MetricVerdict, Reason, Rule, Verdict};
use crate::stats::{Looks, SignedRank, first_paired_look, histogram_quantile, mean, tail_guard};

use super::decision::{add_flag, level_of, orient, overall};
use super::design::threshold;
use super::pairs::unit_requests;
use super::point;
use super::reason::explain;
use super::relative::{Cause, Evaluated, Evidence, Levels, Restraint, judge};
use super::search::{Found, Metrics, Search, flag_early, results};
use super::series::{Life, median_requests, values};
use super::stored::flag_gain;
use super::units::pooled;
use super::{Decision, Design, GateError, PairPlan, Unit, absolute};

/// Requests a side in a unit below which its percentile may not even fail.
const FAIL_REQUESTS: u64 = 20;
/// Units vary about the planned number of requests; this share of it is enough.
const REQUEST_SLACK: f64 = 0.8;

/// What a live decision wants next.
#[derive(Debug, Clone, PartialEq)]
pub enum PairedStep {
    /// Measure this many more units.
    Measure {
        /// Units, at least 1.
        units: u32,
    },
    /// A regression was found: load both sides anew, then say so with [`PairedGate::confirm`].
    Confirm,
    /// The decision is taken.
    Done(Box<Decision>),
}

/// A candidate against a live reference.
///
/// The order within each pair is an independent fair coin. A regression is provisional until both
/// sides were loaded anew and fail again on fresh pairs: each load of a model has an offset of its
/// own, which no number of pairs of the same load can average out.
#[derive(Debug, Clone)]
pub struct PairedGate {
    search: Search,
    /// Units that belong to an earlier search.
    behind: usize,
    provisional: Option<Metrics>,
    /// Looks of the first search, once it is over.
    earlier_looks: u32,
    waiting: bool,
    max_units: u32,
    coins: ChaCha8Rng,
}

impl PairedGate {
    /// Prepares a decision over at most `plan.max_units` units. The order of the pairs follows from
    /// the seed.
    pub fn new(design: Design, plan: &PairPlan, seed: u64) -> Result<Self, GateError> {
        design.check()?;
        let looks = looks(&design, plan.max_units)?;
        Ok(Self {
            search: Search::new(design, looks),
            behind: 0,
            provisional: None,
            earlier_looks: 0,
            waiting: false,
            max_units: plan.max_units,
            coins: ChaCha8Rng::seed_from_u64(seed),
        })
    }

    /// Numbers of units at which the rule is applied.
    pub fn looks(&self) -> &[u32] {
        self.search.looks()
    }

    /// Units of the present search among `have`.
    pub fn own_units(&self, have: usize) -> u32 {
        have.saturating_sub(self.behind) as u32
    }

    /// The order of the next pairs: true where the candidate comes first.
    pub fn coins(&mut self, pairs: u32) -> Vec<bool> {
        (0..pairs).map(|_| self.coins.random::<bool>()).collect()
    }

    /// Takes all units so far, those before a reload included, and says what comes next.
    pub fn step(&mut self, units: &[Unit]) -> Result<PairedStep, GateError> {
        if self.waiting {
            return Ok(PairedStep::Confirm);
        }
        let own = units.get(self.behind..).unwrap_or_default();
        let design = self.search.design().clone();
        let found = self.search.look(own.len() as u32, &|limit, levels| {
            evaluate(&design, own, limit, levels)
        })?;
        Ok(match found {
            Found::More(units) => PairedStep::Measure { units },
            Found::Over { metrics, early } => self.conclude(metrics, units, early),
        })
    }

    /// Decides with what is there, spending what is left of both levels: the end of the time
    /// between two looks. A regression still asks to be confirmed.
    pub fn finish(&mut self, units: &[Unit]) -> Result<PairedStep, GateError> {
        let own = units.get(self.behind..).unwrap_or_default();
        if own.is_empty() {
            // Nothing after the reload: the regression stands as it was found.
            return match self.abandon(units) {
                Some(decision) => Ok(PairedStep::Done(Box::new(decision))),
                None => Err(GateError::NoBlocks),
            };
        }
        let design = self.search.design().clone();
        let metrics = self
            .search
            .last(&|limit, levels| evaluate(&design, own, limit, levels))?;
        Ok(self.conclude(metrics, units, false))
    }

    /// Answers [`PairedStep::Confirm`]: true after both sides were loaded anew and warmed up, false
    /// where that is not possible, which takes the decision.
    pub fn confirm(
        &mut self,
        reloaded: bool,
        units: &[Unit],
    ) -> Result<Option<Decision>, GateError> {
        self.waiting = false;
        let Some(metrics) = &self.provisional else {
            return Ok(None);
        };
        if !reloaded {
            let metrics = metrics.clone();
            return Ok(Some(self.unconfirmed(&metrics, units)));
        }
        let limits: Vec<Limit> = metrics
            .iter()
            .filter(|(_, metric)| metric.result.verdict == MetricVerdict::Regression)
            .map(|(limit, _)| *limit)
            .collect();
        // The levels stay those of the whole design: only what failed is asked again.
        let design = Design {
            limits,
            ..self.search.design().clone()
        };
        let looks = looks(&design, self.max_units)?;
        self.earlier_looks = self.search.taken();
        self.search = Search::new(design, looks);
        self.behind = units.len();
        Ok(None)
    }

    /// The regression that was found and could not be confirmed because measuring failed; none
    /// where none was found.
    pub fn abandon(&mut self, units: &[Unit]) -> Option<Decision> {
        self.waiting = false;
        let metrics = self.provisional.take()?;
        Some(self.unconfirmed(&metrics, units))
    }

    /// What follows from a search that is over.
    fn conclude(&mut self, metrics: Metrics, units: &[Unit], early: bool) -> PairedStep {
        let failed = overall(&results(&metrics)) == Verdict::Regression;
        if let Some(first) = self.provisional.take() {
            return PairedStep::Done(Box::new(self.after_reload(&first, &metrics, units)));
        }
        // A bare comparison claims no error rates, and is not confirmed.
        if failed && self.search.design().rule == Rule::Evidence {
            self.provisional = Some(metrics);
            self.waiting = true;
            return PairedStep::Confirm;
        }
        let mut decision = self.decision(&metrics, units);
        if early {
            flag_early(&mut decision.flags);
        }
        PairedStep::Done(Box::new(decision))
    }

    fn unconfirmed(&self, metrics: &Metrics, units: &[Unit]) -> Decision {
        let mut decision = self.decision(metrics, units);
        add_flag(
            &mut decision.flags,
            "not_confirmed",
            "not confirmed by a reload: a part of the change may belong to this load of the model"
                .to_owned(),
        );
        decision
    }

    /// Joins what failed before the reload with what came after it.
    fn after_reload(&self, first: &Metrics, second: &Metrics, units: &[Unit]) -> Decision {
        let mut joined = first.clone();
        let mut refuted = Vec::new();
        for (limit, metric) in &mut joined {
            if metric.result.verdict != MetricVerdict::Regression {
                continue;
            }
            let Some((_, again)) = second.iter().find(|(other, _)| other == limit) else {
                continue;
            };
            let changes = format!(
                "{} before a reload, {} after it",
                percent(metric.result.change),
                percent(again.result.change)
            );
            if again.result.verdict == MetricVerdict::Regression {
                // The fresh estimate was not selected for being large.
                metric.result = MetricResult {
                    note: Some(format!("confirmed after a reload: {changes}")),
                    ..again.result.clone()
                };
            } else {
                metric.result.verdict = MetricVerdict::Inconclusive;
                // The second half of the evidence points the same way, only less clearly.
                let near = again.result.verdict == MetricVerdict::Inconclusive
                    && again
                        .result
                        .change
                        .zip(again.result.threshold)
                        .is_some_and(|(change, threshold)| change / threshold >= 0.5);
                let (code, what) = if near {
                    ("near_threshold", "too close to the limit to confirm")
                } else {
                    ("differs_by_load", "differs by load")
                };
                metric.result.note = Some(format!("{what}: {changes}"));
                refuted.push(Reason {
                    code: code.to_owned(),
                    text: format!("{}: {what}, {changes}", limit.metric.label()),
                    next: if near {
                        "raise budget, or move the limit away from what is accepted".to_owned()
                    } else {
                        "check again, or allow more: loads of this model differ by themselves"
                            .to_owned()
                    },
                });
            }
        }
        let mut decision = self.decision(&joined, units);
        if decision.verdict == Verdict::Inconclusive
            && let Some(reason) = refuted.into_iter().next()
        {
            decision.reason = Some(reason);
        }
        decision
    }

    fn decision(&self, metrics: &Metrics, units: &[Unit]) -> Decision {
        let design = self.search.design();
        let mut flags: Vec<Flag> = Vec::new();
        for (limit, metric) in metrics {
            flag_gain(design, limit, &metric.result, &mut flags);
        }
        let results = results(metrics);
        Decision {
            verdict: overall(&results),
            metrics: results,
            looks: self.earlier_looks + self.search.taken(),
            blocks: 0,
            units: units.len() as u32,
            pairs: units.iter().map(|unit| unit.pairs).sum(),
            assumed_noise: None,
            reason: explain(design, metrics, true),
            flags,
        }
    }
}

fn looks(design: &Design, max_units: u32) -> Result<Looks, GateError> {
    match design.rule {
        Rule::Evidence => {
            let first = first_paired_look(design.alpha(), max_units).map_err(GateError::Plan)?;
            Ok(Looks::plan(first, max_units))
        }
        Rule::Point => Ok(Looks::plan(12, max_units.min(12))),
    }
}

fn percent(change: Option<f64>) -> String {
    change.map_or_else(
        || "unknown".to_owned(),
        |change| format!("{:+.1} %", change * 100.0),
    )
}

/// One limit over the units of a search.
fn evaluate(
    design: &Design,
    units: &[Unit],
    limit: &Limit,
    levels: Levels,
) -> Result<Evaluated, GateError> {
    let side = |pick: fn(&Unit) -> &Block| -> Vec<Block> {
        // Histograms are looked at in place where they are needed.
        units
            .iter()
            .map(|unit| without_histogram(pick(unit)))
            .collect()
    };
    if design.rule == Rule::Point {
        let lives = [Life {
            blocks: side(|unit| &unit.baseline),
            epoch: 0,
        }];
        let result = point::evaluate(limit, &lives, &side(|unit| &unit.candidate))?;
        return Ok(Evaluated::new(result, Cause::Missing, true));
    }
    if matches!(limit.bound, Bound::Absolute(_)) {
        let candidate: Vec<Block> = units.iter().map(|unit| unit.candidate.clone()).collect();
        return absolute::evaluate(limit, &candidate, levels);
    }
    let metric = limit.metric;
    let series = values(&side(|unit| &unit.baseline), metric)
        .and_then(|base| Ok((base, values(&side(|unit| &unit.candidate), metric)?)));
    let (base, cand) = match series {
        Ok(series) => series,
        Err(note) => return Ok(Evaluated::missing(limit, note)),
    };
    if base.len() != units.len() || cand.len() != units.len() {
        let note = format!("{} was not measured for each unit", metric.label());
        return Ok(Evaluated::missing(limit, note));
    }
    let logs = |values: &[f64]| -> Vec<f64> {
        values.iter().map(|value| orient(metric, *value)).collect()
    };
    let (base, cand) = (logs(&base), logs(&cand));
    let differences: Vec<f64> = cand.iter().zip(&base).map(|(c, b)| c - b).collect();
    let fail = |source| GateError::Stats { metric, source };
    let rank = SignedRank::new(&differences).map_err(fail)?;
    let bound = |level: f64, end: fn(&SignedRank, f64) -> _| {
        if level > 0.0 {
            end(&rank, level)
        } else {
            Ok(None)
        }
    };
    let evidence = Evidence {
        estimate: rank.estimate(),
        lower: bound(levels.alpha, SignedRank::lower).map_err(fail)?,
        upper: bound(levels.beta, SignedRank::upper).map_err(fail)?,
    };
    let mut restraint = request_restraint(limit, units);
    let mut cause = if restraint.never_pass {
        Cause::FewRequests
    } else {
        Cause::Time
    };
    let wanted = threshold(limit)?;
    let ruled_out = evidence.upper.is_some_and(|upper| upper < wanted);
    let stuck = restraint.never_pass && (restraint.never_fail || ruled_out);
    if ruled_out
        && let Some(p) = metric.quantile()
        && let Some(note) = bursty(limit, units, p, wanted)?
    {
        restraint = Restraint {
            never_pass: true,
            note: Some(note),
            ..restraint
        };
        cause = Cause::Tail;
    }
    let mut result = judge(design, limit, evidence, levels, &restraint)?;
    result.baseline = Some(level_of(metric, mean(&base).map_err(fail)?));
    result.candidate = Some(level_of(metric, mean(&cand).map_err(fail)?));
    Ok(Evaluated::new(result, cause, stuck))
}

/// A block's figures alone: histograms are large and not needed for a series.
fn without_histogram(block: &Block) -> Block {
    Block {
        side: block.side,
        index: block.index,
        duration_ns: block.duration_ns,
        batch: block.batch,
        requests: block.requests,
        errors: block.errors.clone(),
        latency: block.latency,
        histogram: None,
        client: block.client,
        server: block.server,
        gpu: block.gpu,
        steal: block.steal,
        stated_throughput: block.stated_throughput,
    }
}

/// What the number of requests in the units allows for a percentile.
fn request_restraint(limit: &Limit, units: &[Unit]) -> Restraint {
    let Some(p) = limit.metric.quantile() else {
        return Restraint::default();
    };
    let requests = median_requests(units.iter().map(|unit| &unit.baseline))
        .min(median_requests(units.iter().map(|unit| &unit.candidate)));
    let wanted = unit_requests(p);
    if requests as f64 >= wanted as f64 * REQUEST_SLACK {
        return Restraint::default();
    }
    let total: u64 = units.iter().map(|unit| unit.candidate.requests).sum();
    Restraint {
        never_pass: true,
        never_fail: requests < FAIL_REQUESTS.min(wanted),
        note: Some(format!(
            "needs {} requests a side, this check has {total}",
            wanted * 12
        )),
    }
}

/// Why a percentile must not pass although its units do: their tails together are worse.
fn bursty(
    limit: &Limit,
    units: &[Unit],
    p: f64,
    threshold: f64,
) -> Result<Option<String>, GateError> {
    let fail = |source| GateError::Stats {
        metric: limit.metric,
        source,
    };
    let label = limit.metric.label();
    let (Some(base), Some(cand)) = (
        pooled(units.iter().map(|unit| &unit.baseline)),
        pooled(units.iter().map(|unit| &unit.candidate)),
    ) else {
        return Ok(Some(format!(
            "{label}: without all latencies its tail cannot be checked"
        )));
    };
    let q_base = histogram_quantile(&base, p).map_err(fail)?;
    let q_cand = histogram_quantile(&cand, p).map_err(fail)?;
    let mut both = base;
    if both.add(&cand).is_err() || q_base <= 0.0 || q_cand <= 0.0 {
        return Ok(Some(format!("{label}: its tail cannot be checked")));
    }
    let ratio = (q_cand / q_base).ln();
    if ratio < threshold {
        return Ok(None);
    }
    let limit_ns = histogram_quantile(&both, p).map_err(fail)?;
    let excess: Vec<f64> = units
        .iter()
        .map(|unit| share_above(&unit.candidate, limit_ns) - share_above(&unit.baseline, limit_ns))
        .collect();
    let guard = tail_guard(&excess, ratio).map_err(fail)?;
    Ok(guard.blocks_pass(threshold).then(|| {
        format!(
            "bursty tail: {label} of all requests together rose by {:.1} %",
            ratio.exp_m1() * 100.0
        )
    }))
}

/// The share of a block's requests above a latency in nanoseconds, 0 without any; those in its very
/// bin count half, so that many equal latencies hide nothing on either side.
fn share_above(block: &Block, limit_ns: f64) -> f64 {
    let Some(histogram) = &block.histogram else {
        return 0.0;
    };
    let all = histogram.len();
    if all == 0 {
        return 0.0;
    }
    let (mut above, mut at) = (0, 0);
    for step in histogram.iter_recorded() {
        let value = step.value_iterated_to();
        if histogram.equivalent(value, limit_ns as u64) {
            at += step.count_at_value();
        } else if value as f64 > limit_ns {
            above += step.count_at_value();
        }
    }
    (above as f64 + at as f64 / 2.0) / all as f64
}
