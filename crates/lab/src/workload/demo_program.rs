//! The program that the demo runs: it generates a document, parses it, indexes it, transforms it on threads, and drops everything.
//!
//! It allocates as such programs do: millions of small strings and map nodes with mixed lifetimes, a few large buffers that grow, and results
//! that one thread allocates and another frees. It does not depend on the allocator, and its result is the same in every run.

use crate::workload::loaded_allocator;
use crate::workload::own_process::{self, RssReader, Usage};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::HashMap;
use std::fmt::Write;
use std::hash::{BuildHasherDefault, DefaultHasher};
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// The hidden subcommand that runs it.
pub(crate) const SUBCOMMAND: &str = "demo-program";

/// Orders in the document; about 300 bytes each.
const ORDERS: usize = 80_000;

/// Threads that transform.
const THREADS: usize = 4;

/// Time between dropping everything and the last reading of the resident size.
const SETTLE: Duration = Duration::from_millis(1100);

/// What one run of the program took.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct DemoRecord {
    /// Size of the document.
    pub(crate) document_bytes: u64,
    /// Threads that transform.
    pub(crate) threads: usize,
    /// Time to generate the document.
    pub(crate) generate_ns: u64,
    /// Time to parse it.
    pub(crate) parse_ns: u64,
    /// Time to build the index.
    pub(crate) index_ns: u64,
    /// Time to transform the orders.
    pub(crate) transform_ns: u64,
    /// Time to drop everything.
    pub(crate) drop_ns: u64,
    /// Processor time of all steps.
    pub(crate) cpu_ns: u64,
    /// Page faults of the process.
    pub(crate) minor_faults: u64,
    /// Largest resident size.
    pub(crate) peak_rss_bytes: u64,
    /// Resident size a second after everything was dropped.
    pub(crate) rss_after_bytes: u64,
    /// Checksum of the transformed documents.
    pub(crate) checksum: u64,
    /// The library that answered `malloc`.
    pub(crate) malloc_library: String,
    /// The version that the allocator states.
    pub(crate) allocator_version: String,
}

impl DemoRecord {
    /// Time of all steps.
    pub(crate) fn total_ns(&self) -> u64 {
        self.generate_ns + self.parse_ns + self.index_ns + self.transform_ns + self.drop_ns
    }
}

type Index = HashMap<String, Vec<usize>, BuildHasherDefault<DefaultHasher>>;

/// Runs the program and prints its record.
pub(crate) fn main() -> ExitCode {
    match run() {
        Ok(record) => {
            println!("{record}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("the demo program failed: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> serde_json::Result<String> {
    let (document, generate_ns) = timed(generate);
    let document_bytes = document.len() as u64;
    let (parsed, parse_ns) = timed(|| serde_json::from_str::<Vec<Value>>(&document));
    let orders = Arc::new(parsed?);
    let (index, index_ns) = timed(|| Arc::new(build_index(&orders)));
    let (documents, transform_ns) = timed(|| transform_all(&orders, &index));
    let checksum = documents
        .iter()
        .flatten()
        .flat_map(|text| text.bytes())
        .fold(0_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)));
    let ((), drop_ns) = timed(move || drop((document, orders, index, documents)));
    let usage = Usage::of_self();
    let peak_rss_bytes = own_process::peak_rss_bytes().unwrap_or(0);
    thread::sleep(SETTLE);
    serde_json::to_string(&DemoRecord {
        document_bytes,
        threads: THREADS,
        generate_ns,
        parse_ns,
        index_ns,
        transform_ns,
        drop_ns,
        cpu_ns: usage.user_ns + usage.system_ns,
        minor_faults: usage.minor_faults,
        peak_rss_bytes,
        rss_after_bytes: RssReader::open().map_or(0, |reader| reader.bytes()),
        checksum,
        malloc_library: loaded_allocator::malloc_library(),
        allocator_version: loaded_allocator::version(),
    })
}

fn timed<T>(step: impl FnOnce() -> T) -> (T, u64) {
    let began = Instant::now();
    let result = step();
    (result, began.elapsed().as_nanos() as u64)
}

/// Generates the document: an array of orders, each with a customer, an address, items and tags.
fn generate() -> String {
    let mut text = String::from("[");
    for order in 0..ORDERS {
        let separator = if order == 0 { "" } else { "," };
        let (customer, city) = (order * 7919 % 9973, order % 311);
        // Writing to a string does not fail.
        let _ = write!(
            text,
            r#"{separator}{{"id":{order},"customer":"customer-{customer:05}","address":{{"street":"{} Long Street","city":"city-{city}","zip":"{:05}"}},"items":["#,
            order % 999,
            order * 31 % 100_000
        );
        for item in 0..order % 4 + 1 {
            let separator = if item == 0 { "" } else { "," };
            let number = (order + item * 131) % 5000;
            let _ = write!(
                text,
                r#"{separator}{{"sku":"SKU-{number:06}","count":{},"price":{}.{:02}}}"#,
                item + 1,
                number % 97,
                number % 100
            );
        }
        let _ = write!(
            text,
            r#"],"tags":["tag-{}","{}"],"open":{}}}"#,
            order % 41,
            if order % 3 == 0 { "rush" } else { "normal" },
            order % 2 == 0
        );
    }
    text.push(']');
    text
}

/// Builds the index: every word of interest, with the positions of the orders in which it occurs.
fn build_index(orders: &[Value]) -> Index {
    let mut index = Index::default();
    for (position, order) in orders.iter().enumerate() {
        let items = order["items"].as_array().into_iter().flatten().filter_map(|item| item["sku"].as_str());
        let tags = order["tags"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let words = items.chain(tags).chain(order["customer"].as_str()).chain(order["address"]["city"].as_str());
        for word in words {
            index.entry(word.to_owned()).or_default().push(position);
        }
    }
    index
}

/// Each thread looks up its share of the cities in the index and writes a changed copy of every order that it finds; the main thread drops the
/// texts.
fn transform_all(orders: &Arc<Vec<Value>>, index: &Arc<Index>) -> Vec<Vec<String>> {
    let workers: Vec<_> = (0..THREADS)
        .map(|share| {
            let (orders, index) = (Arc::clone(orders), Arc::clone(index));
            thread::spawn(move || {
                let mut cities: Vec<&String> = index.keys().filter(|word| word.starts_with("city-")).collect();
                cities.sort();
                let mine = cities.into_iter().skip(share).step_by(THREADS);
                let found = mine.flat_map(|city| index.get(city).into_iter().flatten());
                found.map(|&position| transform(&orders[position], &index)).collect()
            })
        })
        .collect();
    workers.into_iter().filter_map(|worker| worker.join().ok()).collect()
}

fn transform(order: &Value, index: &Index) -> String {
    let mut copy = order.clone();
    let total: f64 = order["items"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|item| item["count"].as_f64().unwrap_or(0.0) * item["price"].as_f64().unwrap_or(0.0))
        .sum();
    let customer = order["customer"].as_str().unwrap_or_default();
    copy["total"] = Value::from(format!("{total:.2}"));
    copy["orders_of_customer"] = Value::from(index.get(customer).map_or(0, Vec::len));
    copy["label"] = Value::from(format!("{} / {}", customer.to_uppercase(), order["address"]["city"]));
    copy.to_string()
}
