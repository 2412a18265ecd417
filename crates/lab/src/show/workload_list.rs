//! The list that `freestone bench --list` prints: the workloads and their parameters.

use crate::show::table;
use crate::workload::catalogue;

/// Prints the table.
pub(crate) fn print() {
    let mut table = table::text(&["workload", "shows", "models", "parameters", "does not show"].map(str::to_owned));
    for workload in catalogue::ALL {
        let params: Vec<String> =
            workload.params.iter().map(|param| format!("{}={}: {}", param.name, param.values[1], param.help)).collect();
        table.add_row(vec![
            workload.name.into(),
            format!("{:?}", workload.shows).to_lowercase(),
            workload.models.into(),
            params.join("\n"),
            workload.hides.into(),
        ]);
    }
    println!("{table}");
}
