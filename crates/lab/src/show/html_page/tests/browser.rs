//! The page in a real browser, when Chromium is installed: what it draws, what it would fetch, and whether it can be read in light and dark.

use super::*;
use crate::process::command_file;
use std::process::Command;

/// Inspects the page from inside and writes the result, as JSON, into the document.
const PROBE: &str = r#"<script>addEventListener('load', () => {
const seen = { fetched: performance.getEntriesByType('resource').map(entry => entry.name) };
const drawn = [...document.querySelectorAll('svg')].filter(svg => svg.getClientRects().length);
const letters = [...document.querySelectorAll('svg text, td, p, li, h1, h2, figcaption')].filter(element => element.getClientRects().length);
const zoom = element => { const svg = element.closest('svg[viewBox]'); return svg ? svg.getBoundingClientRect().width / svg.viewBox.baseVal.width : 1; };
seen.smallest = Math.min(...letters.map(element => parseFloat(getComputedStyle(element).fontSize) * zoom(element)));
seen.pictures = drawn.length;
seen.empty = drawn.filter(svg => svg.getBoundingClientRect().height < 40 || !svg.querySelector('circle, polyline')).length;
seen.overlaps = [];
for (const svg of drawn) {
  const texts = [...svg.querySelectorAll('text')].map(text => [text.textContent.trim(), text.getBoundingClientRect()]);
  texts.forEach(([one, a], index) => texts.slice(index + 1).forEach(([other, b]) => {
    if (a.left < b.right && b.left < a.right && a.top + 2 < b.bottom && b.top + 2 < a.bottom) seen.overlaps.push(one + ' on ' + other);
  }));
}
seen.cut = [...document.querySelectorAll('.heads')].filter(table => table.getBoundingClientRect().right > window.innerWidth).length;
seen.too_wide = document.documentElement.scrollWidth > window.innerWidth;
const light = css => { const [r, g, b] = css.match(/[0-9.]+/g).map(Number); return (0.3 * r + 0.6 * g + 0.1 * b) / 255; };
seen.paper = light(getComputedStyle(document.body).backgroundColor);
seen.ink = [document.body, document.querySelector('svg text')].map((element, index) =>
  light(getComputedStyle(element)[index ? 'fill' : 'color']));
parent.postMessage(JSON.stringify(seen), '*');
});</script>"#;

/// Shows the page in a frame of the given width, because a browser's window cannot be as narrow as a telephone's, and writes what the probe says
/// into its own document.
fn frame(width: u32, height: u32) -> String {
    format!(
        "<!doctype html><html><body style=\"margin:0\"><iframe src=\"page.html\" style=\"border:0;width:{width}px;height:{height}px\"></iframe>\
         <script>addEventListener('message', event => {{ document.body.innerText = 'PROBE' + event.data + 'PROBE'; }});</script></body></html>"
    )
}

/// Where pictures of the page are kept for whoever wants to look at them: beside what cargo builds.
fn screenshots() -> PathBuf {
    let executable = std::env::current_exe().unwrap();
    let folder = executable.ancestors().nth(3).unwrap().join("screenshots");
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// The probe's result for `html`, opened without name resolution; `None` when there is no Chromium.
fn look(html: &str, dark: bool, width: u32) -> Option<serde_json::Value> {
    let browser =
        ["chromium", "chromium-browser", "google-chrome"].iter().find_map(|name| command_file::find(name).ok());
    let Some(browser) = browser else {
        println!("skipped: Chromium is not installed, so the page was not opened in it (apt install chromium)");
        return None;
    };
    let folder = std::env::temp_dir().join(format!("freestone-page-{}-{dark}-{width}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    // With the policy in place nothing would be fetched whatever the page references, and the probe would not run.
    let page = html.replace(skeleton::POLICY, "");
    let open = |file: &str, height: u32, arguments: &[&str]| {
        fs::write(folder.join(file), frame(width, height)).unwrap();
        Command::new(&browser)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND"])
            .args(arguments)
            .arg(format!("--blink-settings=preferredColorScheme={}", u8::from(!dark)))
            .arg(format!("--window-size={},{height}", width.max(500)))
            .arg(format!("--user-data-dir={}", folder.join("profile").display()))
            .arg(format!("file://{}", folder.join(file).display()))
            .output()
            .unwrap()
    };
    fs::write(folder.join("page.html"), &page).unwrap();
    let picture = screenshots().join(format!("report-{width}-{}.png", if dark { "dark" } else { "light" }));
    open("picture.html", 5200, &[&format!("--screenshot={}", picture.display())]);
    fs::write(folder.join("page.html"), page.replace("</body>", &format!("{PROBE}</body>"))).unwrap();
    let output = open("frame.html", 900, &["--dump-dom", "--virtual-time-budget=4000"]);
    fs::remove_dir_all(&folder).unwrap();
    let dom = String::from_utf8_lossy(&output.stdout);
    let said = dom.split("PROBE").nth(1).unwrap_or_else(|| panic!("{dom}{}", String::from_utf8_lossy(&output.stderr)));
    Some(serde_json::from_str(&said.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")).unwrap())
}

#[test]
fn the_page_draws_its_plots_fetches_nothing_and_can_be_read_in_light_and_dark() {
    let results = sample_of(&[
        (1, "system"),
        (1, "freestone"),
        (4, "mimalloc"),
        (3, "power-of-two pool, no lock"),
        (2, "<other>"),
    ]);
    let html = page_of(&[(PathBuf::from("one.jsonl"), results)]);
    let mut papers = Vec::new();
    for (dark, width) in [(false, 1280), (true, 1280), (false, 768), (true, 390)] {
        let Some(seen) = look(&html, dark, width) else { return };
        assert_eq!(seen["fetched"], serde_json::json!([]));
        assert_eq!(seen["pictures"], 4, "two ratio charts, a memory curve and a latency curve");
        assert!(seen["smallest"].as_f64().unwrap() >= 11.0, "letters can be read at a width of {width}: {seen}");
        assert_eq!(seen["empty"], 0);
        assert_eq!(seen["overlaps"], serde_json::json!([]), "at a width of {width}");
        assert_eq!(seen["too_wide"], false, "at a width of {width}");
        assert_eq!(seen["cut"], 0, "the summary is whole at a width of {width}");
        let paper = seen["paper"].as_f64().unwrap();
        for ink in seen["ink"].as_array().unwrap() {
            assert!((ink.as_f64().unwrap() - paper).abs() > 0.5, "the text stands out from the paper: {seen}");
        }
        papers.push(paper);
    }
    assert!(papers[0] > 0.8 && papers[1] < 0.2 && papers[3] < 0.2, "light is light and dark is dark: {papers:?}");
}

#[test]
fn the_probe_sees_what_a_page_fetches() {
    let html = "<html><body><svg><text>1</text></svg><img src=\"http://example.invalid/x.png\"></body></html>";
    if let Some(seen) = look(html, false, 900) {
        assert_eq!(seen["fetched"].as_array().unwrap().len(), 1);
        assert_eq!(seen["empty"], 1);
    }
}
