"""The explorer in a real browser: load, move the slider, read the numbers; hostile text; keyboard; narrow screens."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fr3e.algorithm.anchors import choose_anchors
from fr3e.config.training import Fr3eConfig
from fr3e.files import read_jsonl
from fr3e.report.explorer import example, page, ranking, write_explorer

pytestmark = pytest.mark.browser
QUIET = (
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
HOSTILE = [
    "</script>",
    "<script>window.hacked=1</script>",
    "<img src=x onerror='window.hacked=1'>",
    "&lt;b&gt;",
    "\u2028",
    "\"'`",
    "\n",
]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Headless Chromium with a new profile."""
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("no chromium and chromedriver here; Debian has them as chromium and chromium-driver")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    profile = tmp_path_factory.mktemp("profile")
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", *QUIET, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    running = webdriver.Chrome(options=options, service=Service(driver))
    running.set_window_size(1100, 1000)
    yield running
    running.quit()


def opened(browser: Any, path: Path) -> None:
    browser.get(path.resolve().as_uri())
    assert browser.get_log("browser") == [], "the page logged an error"


def choose(browser: Any, index: int) -> None:
    script = "const s = document.getElementById('which'); s.selectedIndex = arguments[0]; s.dispatchEvent(new Event('change'))"
    browser.execute_script(script, index)


def slide(browser: Any, count: int) -> None:
    script = "const s = document.getElementById('k'); s.value = arguments[0]; s.dispatchEvent(new Event('input'))"
    browser.execute_script(script, count)


def texts(browser: Any, selector: str) -> list[str]:
    return browser.execute_script(
        "return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent)", selector
    )


def anchors(browser: Any) -> list[int]:
    return browser.execute_script(
        "return [...document.querySelectorAll('#strip .anchor')].map((e) => Number(e.dataset.position))"
    )


def test_the_worked_example_has_its_published_numbers(browser: Any, in_demo: Path) -> None:
    write_explorer(Path("results/demo/report.yaml"), Path("explorer.html"))
    opened(browser, Path("explorer.html"))
    choose(browser, 0)
    slide(browser, 2)
    assert texts(browser, "#strip .anchor") == ["t2", "t4"]
    assert texts(browser, "#states .block") == ["t1–t2", "t3–t4", "t5–t12"]
    assert texts(browser, "#states .value") == ["0.375", "0.625"]
    assert texts(browser, "#states .alpha") == ["—", "0.7788"]
    slide(browser, 4)
    assert texts(browser, "#strip .anchor") == ["t2", "t4", "t6", "t8"]
    assert texts(browser, "#states .block") == ["t1–t2", "t3–t4", "t5–t6", "t7–t8", "t9–t12"]
    assert texts(browser, "#states .value") == ["0.375", "0.625", "0.750", "0.250"]
    assert texts(browser, "#states .alpha") == ["—", "0.7788", "0.8825", "1.6487"]
    slide(browser, 5)
    assert texts(browser, "#states .value")[4] == "not measured"
    assert texts(browser, "#k-value") == ["5"]
    assert browser.save_screenshot("explorer.png")
    assert Path("explorer.png").stat().st_size > 10_000


def test_a_real_trajectory_shows_what_the_run_measured(browser: Any, in_demo: Path) -> None:
    write_explorer(Path("results/demo/report.yaml"), Path("explorer.html"))
    opened(browser, Path("explorer.html"))
    choose(browser, 1)
    row = next(read_jsonl(Path("results/demo/runs/toy-fr3e-s0/trajectories.jsonl")))
    assert anchors(browser) == row["anchors"]
    states = row["states"]
    assert texts(browser, "#states .value") == [f"{state['value']:.3f}" for state in states]
    assert texts(browser, "#states .alpha") == [f"{state['alpha']:.4f}" for state in states]
    settings = Fr3eConfig(num_anchors=5)
    end = row["tokens"].index("\\boxed{")
    eligible = [t < end for t in range(len(row["tokens"]))]
    slide(browser, 5)
    expected = choose_anchors(row["entropies"], settings, eligible_T=eligible, surprisal_T=row["entropies"], seed="")
    assert tuple(anchors(browser)) == expected
    values = texts(browser, "#states .value")
    assert values.count("not measured") == 2
    assert "Other states were never sampled from" in texts(browser, "#measured")[0]
    slide(browser, 0)
    assert anchors(browser) == []
    assert texts(browser, "#states .value") == ["0.375"]


def test_the_page_chooses_the_anchors_that_training_would(browser: Any, tmp_path: Path) -> None:
    entropies = [0.5, 0.5, 2.0, 0.1, 2.0, 1.9, 0.0, 0.5, 3.0, 2.9]
    made = {**example(), "entropies": entropies, "tokens": list("abcdefghij"), "measured": {}, "spaced": False}
    made |= {"order": ranking(entropies, [True] * 10), "min_gap": 2, "run_k": 1}
    path = tmp_path / "gap.html"
    path.write_text(page([made], "demo"), encoding="utf-8")
    opened(browser, path)
    for count in range(10):
        slide(browser, count)
        settings = Fr3eConfig(num_anchors=count, min_gap=2)
        chosen = choose_anchors(entropies, settings, eligible_T=[True] * 10, surprisal_T=entropies, seed="")
        assert tuple(anchors(browser)) == chosen


def test_hostile_text_stays_text(browser: Any, tmp_path: Path) -> None:
    made = {
        **example(),
        "tokens": HOSTILE,
        "entropies": [1.0] * len(HOSTILE),
        "question": HOSTILE[1],
        "title": HOSTILE[0],
    }
    made |= {"order": list(range(len(HOSTILE))), "gold": HOSTILE[2], "measured": {}, "run_k": 2, "spaced": False}
    path = tmp_path / "hostile.html"
    path.write_text(page([made], "<b>demo</b>"), encoding="utf-8")
    opened(browser, path)
    slide(browser, len(HOSTILE))
    assert browser.execute_script("return window.hacked === undefined")
    assert browser.execute_script("return document.querySelectorAll('#strip img, #strip script, main b').length") == 0
    shown = texts(browser, "#strip .token")
    assert shown[:6] == HOSTILE[:6]
    assert shown[6] == "⏎"


def test_nothing_is_fetched(browser: Any, in_demo: Path) -> None:
    write_explorer(Path("results/demo/report.yaml"), Path("explorer.html"))
    opened(browser, Path("explorer.html"))
    fetched = browser.execute_script("return performance.getEntriesByType('resource').map((entry) => entry.name)")
    assert fetched == []


def test_the_slider_obeys_the_keyboard_and_says_what_changed(browser: Any, in_demo: Path) -> None:
    from selenium.webdriver.common.keys import Keys

    write_explorer(Path("results/demo/report.yaml"), Path("explorer.html"))
    opened(browser, Path("explorer.html"))
    choose(browser, 0)
    slider = browser.find_element("id", "k")
    slider.send_keys(Keys.ARROW_RIGHT)
    assert texts(browser, "#strip .anchor") == ["t2", "t4", "t6"]
    assert "3 anchors" in texts(browser, "#summary")[0]
    assert browser.find_element("id", "summary").get_attribute("aria-live") == "polite"
    slider.send_keys(Keys.HOME)
    assert texts(browser, "#strip .anchor") == []
    assert not browser.find_element("id", "less").is_enabled()
    browser.find_element("id", "more").click()
    assert texts(browser, "#strip .anchor") == ["t2"]
    for name in ("which", "k"):
        assert (
            json.loads(browser.execute_script(f"return String(document.querySelectorAll('label[for={name}]').length)"))
            == 1
        )


def test_a_narrow_screen_needs_no_sideways_scrolling(browser: Any, in_demo: Path) -> None:
    write_explorer(Path("results/demo/report.yaml"), Path("explorer.html"))
    device = {"width": 360, "height": 740, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", device)
    try:
        opened(browser, Path("explorer.html"))
        slide(browser, 5)
        assert browser.execute_script("return document.documentElement.scrollWidth") <= 360
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
