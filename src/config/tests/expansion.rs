use super::{SCENARIO, load, load_all, messages};
use crate::config::Overrides;
use crate::config::schema::NOT_YET;
use crate::data::Load;

fn names(text: &str, only: &[&str]) -> Result<Vec<String>, String> {
    let overrides = Overrides {
        only: only.iter().map(|&name| name.to_owned()).collect(),
        ..Overrides::default()
    };
    load_all(&[("a.toml", text)], &overrides, &|_| None, NOT_YET)
        .map(|config| config.scenarios.into_iter().map(|s| s.name).collect())
        .map_err(|errors| errors.to_string())
}

#[test]
fn only_lists_add_to_the_name() {
    for (text, expected) in [
        ("", &["s"][..]),
        ("concurrency = 8\nbatch = 4", &["s"]),
        ("concurrency = [8]", &["s-c8"]),
        ("concurrency = [1, 8]\nbatch = 4", &["s-c1", "s-c8"]),
        (
            "concurrency = [8, 1]\nbatch = [1, 4]",
            &["s-c8-b1", "s-c8-b4", "s-c1-b1", "s-c1-b4"],
        ),
        ("batch = [1, 4]", &["s-b1", "s-b4"]),
    ] {
        let found = names(&format!("{SCENARIO}{text}\n"), &[]);
        assert_eq!(found.expect("loads"), expected, "{text}");
    }
    let config = load(&format!("{SCENARIO}concurrency = [1, 8]\nbatch = [2]\n")).expect("loads");
    assert_eq!(config.scenarios[1].load, Load::Closed { concurrency: 8 });
    assert_eq!(config.scenarios[1].batch, 2);
    assert_eq!(config.gated_metrics, 4);
}

#[test]
fn a_name_may_not_grow_too_long() {
    let text = SCENARIO.replace("\"s\"", &format!("\"{}\"", "s".repeat(98)));
    assert!(load(&text).is_ok());
    let found = messages(load(&format!("{text}concurrency = [1]\n")));
    assert!(found.contains("expected at most 100 characters"), "{found}");
}

#[test]
fn only_takes_names_before_and_after_expansion() {
    let text =
        format!("{SCENARIO}concurrency = [1, 8]\n[[scenario]]\nname = \"t\"\nmodel = \"m\"\n");
    assert_eq!(names(&text, &["s"]).expect("loads"), ["s-c1", "s-c8"]);
    assert_eq!(names(&text, &["t", "s-c8"]).expect("loads"), ["s-c8", "t"]);
    assert_eq!(
        names(&text, &["s-c9"]).expect_err("no such scenario"),
        "--only: unknown scenario \"s-c9\": did you mean 's-c8'?"
    );
    assert_eq!(
        names(&text, &["resnet"]).expect_err("no such scenario"),
        "--only: unknown scenario \"resnet\": expected one of s-c1, s-c8, t"
    );
}

#[test]
fn a_scenario_that_is_not_selected_asks_for_no_variable() {
    let text = format!(
        "{SCENARIO}[scenario.server]\nmetadata = {{ a = \"${{ABSENT}}\" }}\n[[scenario]]\nname = \"t\"\nmodel = \"m\"\n"
    );
    assert!(names(&text, &[]).is_err());
    assert_eq!(names(&text, &["t"]).expect("loads"), ["t"]);
}

#[test]
fn names_are_unique_over_all_files() {
    let files = [("a.toml", SCENARIO), ("b.toml", SCENARIO)];
    let found = load_all(&files, &Overrides::default(), &|_| None, NOT_YET);
    assert_eq!(
        messages(found),
        "b.toml:1: key 'scenario.name': the name \"s\" is taken by the scenario at a.toml:1: give each scenario a name of its own"
    );
}

#[test]
fn what_holds_for_the_check_may_not_differ_between_files() {
    let other = SCENARIO.replace("\"s\"", "\"t\"");
    let a = format!("[environment]\nname = \"h100\"\n[gate]\ntotal_budget = \"1h\"\n{SCENARIO}");
    let b = format!("[environment]\nname = \"t4\"\n[gate]\ntotal_budget = \"60m\"\n{other}");
    let files = [("a.toml", a.as_str()), ("b.toml", b.as_str())];
    let found = load_all(&files, &Overrides::default(), &|_| None, NOT_YET);
    assert_eq!(
        messages(found),
        "b.toml:2: key 'environment.name': t4 here, but h100 at a.toml:2: expected one value for the whole check"
    );
}
