use super::*;
use crate::workload::params::{Params, Scale};
use std::collections::BTreeSet;

#[test]
fn every_workload_is_found_by_its_own_name_and_no_other_has_it() {
    let names: BTreeSet<&str> = ALL.iter().map(|workload| workload.name).collect();
    assert_eq!(names.len(), ALL.len());
    assert!(ALL.iter().all(|workload| find(workload.name).is_some_and(|found| std::ptr::eq(found, *workload))));
    assert!(find("larsen").is_none());
}

#[test]
fn a_subject_with_parameters_belongs_to_its_workload() {
    assert_eq!(of_subject("tiny_hot ops=3").map(|workload| workload.name), Some("tiny_hot"));
    assert!(of_subject("/bin/true").is_none());
}

#[test]
fn every_workload_has_defaults_that_resolve_and_parameters_with_different_names() {
    for workload in ALL {
        let names: BTreeSet<&str> = workload.params.iter().map(|param| param.name).collect();
        assert_eq!(names.len(), workload.params.len(), "{}", workload.name);
        for scale in [Scale::Quick, Scale::Normal, Scale::Full] {
            assert!(Params::resolve(workload.params, scale, &[]).is_ok(), "{}", workload.name);
        }
        assert!(workload.params.iter().all(|param| param.values.is_sorted()), "{}", workload.name);
    }
}
