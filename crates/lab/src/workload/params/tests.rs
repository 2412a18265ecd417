use super::*;

static SPECS: [Param; 2] =
    [Param::fixed("slots", 400, "slots"), Param::scaled("ops", [1, 2, 3], "operations").at_least_one()];

#[test]
fn defaults_follow_the_scale() {
    for (scale, expected) in [(Scale::Quick, 1), (Scale::Normal, 2), (Scale::Full, 3)] {
        assert_eq!(Params::resolve(&SPECS, scale, &[]).unwrap().get("ops"), expected);
    }
}

#[test]
fn given_values_override_defaults_and_may_have_separators() {
    let params = Params::resolve(&SPECS, Scale::Quick, &["ops=10_000".into()]).unwrap();
    assert_eq!((params.get("ops"), params.get("slots")), (10_000, 400));
}

#[test]
fn a_wrong_parameter_names_those_there_are() {
    let text = |given: &str| Params::resolve(&SPECS, Scale::Quick, &[given.into()]).err().unwrap().to_string();
    assert!(text("opps=3").contains("slots, ops"));
    assert!(text("ops=many").contains("'many' is not a whole number"));
    assert!(text("ops").contains("name=value"));
}

#[test]
fn zero_is_refused_where_nothing_could_be_measured() {
    let resolved = |given: &str| Params::resolve(&SPECS, Scale::Quick, &[given.into()]);
    assert_eq!(resolved("ops=0").err().unwrap().to_string(), "parameter ops: 0 is too few; it takes 1 or more");
    assert_eq!((resolved("ops=1").unwrap().get("ops"), resolved("slots=0").unwrap().get("slots")), (1, 0));
}

#[test]
fn what_no_machine_could_do_is_refused() {
    let resolved = |value: u64| Params::resolve(&SPECS, Scale::Quick, &[format!("ops={value}")]);
    let told = resolved(u64::MAX).err().unwrap().to_string();
    assert_eq!(told, "parameter ops: 18446744073709551615 is too many; it takes 1099511627776 or less");
    assert_eq!(resolved(1 << 40).unwrap().get("ops"), 1 << 40);
}
