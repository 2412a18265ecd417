//! Parameters of a workload: named whole numbers with defaults. The record contains them, so that a run can be repeated.

use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;

/// The largest value of any parameter: more operations, threads, slots or bytes than a machine has time or memory for.
pub(crate) const MOST: u64 = 1 << 40;

/// How much work a run does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Scale {
    /// About a third of a second.
    Quick,
    /// About a second.
    Normal,
    /// Several seconds.
    Full,
}

/// One parameter.
pub(crate) struct Param {
    /// Its name on the command line and in records.
    pub(crate) name: &'static str,
    /// Values at the three scales.
    pub(crate) values: [u64; 3],
    /// The smallest value that means anything.
    pub(crate) least: u64,
    /// What it means, with its unit.
    pub(crate) help: &'static str,
}

impl Param {
    /// A parameter that is the same at every scale.
    pub(crate) const fn fixed(name: &'static str, value: u64, help: &'static str) -> Self {
        Self { name, values: [value; 3], least: 0, help }
    }

    /// A parameter with a value for quick, normal and full runs.
    pub(crate) const fn scaled(name: &'static str, values: [u64; 3], help: &'static str) -> Self {
        Self { name, values, least: 0, help }
    }

    /// The same parameter, of which 0 is refused: without operations or threads there is nothing to measure.
    pub(crate) const fn at_least_one(self) -> Self {
        Self { least: 1, ..self }
    }
}

/// The values of one run.
#[derive(Clone)]
pub(crate) struct Params(BTreeMap<&'static str, u64>);

impl Params {
    /// The defaults at `scale`, overridden by `given` (`name=value`).
    ///
    /// # Errors
    /// A name is not one of the workload's parameters, or a value is not a number, less than the parameter's least, or too large.
    pub(crate) fn resolve(specs: &'static [Param], scale: Scale, given: &[String]) -> Result<Self> {
        let mut values: BTreeMap<_, _> = specs.iter().map(|spec| (spec.name, spec.values[scale as usize])).collect();
        for text in given {
            let (name, value) =
                text.split_once('=').with_context(|| format!("parameter '{text}': write it as name=value"))?;
            let Some(spec) = specs.iter().find(|spec| spec.name == name) else {
                let known: Vec<_> = specs.iter().map(|spec| spec.name).collect();
                bail!("no parameter is called '{name}' here; there are: {}", known.join(", "));
            };
            let value: u64 = value
                .replace('_', "")
                .parse()
                .with_context(|| format!("parameter {name}: '{value}' is not a whole number"))?;
            if value < spec.least {
                bail!("parameter {name}: {value} is too few; it takes {} or more", spec.least);
            }
            if value > MOST {
                bail!("parameter {name}: {value} is too many; it takes {MOST} or less");
            }
            values.insert(spec.name, value);
        }
        Ok(Self(values))
    }

    /// The value of a parameter that the workload declares.
    pub(crate) fn get(&self, name: &str) -> u64 {
        match self.0.get(name) {
            Some(&value) => value,
            None => unreachable!("the workload reads parameter '{name}', which it does not declare"),
        }
    }

    /// The same value as a size or a count.
    pub(crate) fn size(&self, name: &str) -> usize {
        self.get(name) as usize
    }

    /// All values, for the record.
    pub(crate) fn to_map(&self) -> BTreeMap<String, u64> {
        self.0.iter().map(|(&name, &value)| (name.to_owned(), value)).collect()
    }
}

#[cfg(test)]
mod tests;
