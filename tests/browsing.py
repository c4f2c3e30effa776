"""What every page must stand in a browser."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

FLAGS = (
    "headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run",
    "disable-background-networking", "disable-component-update", "disable-sync",
    "disable-dev-shm-usage", "window-size=1300,900",
)  # fmt: skip


def started_browser():
    """Headless Chromium."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not chromium or not driver:
        pytest.skip("chromium and chromedriver are not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in FLAGS:
        options.add_argument(f"--{flag}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options, webdriver.ChromeService(driver))


def complaints(browser) -> list[str]:
    """Errors on the console since the last time."""
    return [entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]


def wait_until(browser, script: str, *given: object) -> None:
    """Until a script returns true."""
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(browser, 30).until(lambda b: b.execute_script(script, *given))


@contextmanager
def narrow(browser, width: int = 380) -> Iterator[None]:
    """A window as a phone has it; Chromium's own are no narrower than 500 pixels."""
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        yield
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def overflow(browser) -> int:
    """By how many pixels a page is wider than its window."""
    return browser.execute_script(
        "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )


def reached_by_tab(browser, presses: int = 12) -> list[str]:
    """What has the focus after each press of the tab key, and is seen to have it."""
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    browser.execute_script("document.activeElement.blur(); window.scrollTo(0, 0)")
    found = []
    for _ in range(presses):
        ActionChains(browser).send_keys(Keys.TAB).perform()
        found.append(
            browser.execute_script(
                "const e = document.activeElement;"
                "const seen = [null, '::after'].some(part => {"
                "  const s = getComputedStyle(e, part);"
                "  return s.outlineStyle !== 'none' || s.boxShadow !== 'none'});"
                "return e === document.body ? '' : e.tagName + (seen ? '' : ' unseen')"
            )
        )
    return found


@contextmanager
def on_paper(browser) -> Iterator[None]:
    """The page as it is printed."""
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        yield
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def printed_pages(browser) -> int:
    """How many sheets a print of the page takes."""
    import base64

    content = base64.b64decode(browser.print_page())
    assert content.startswith(b"%PDF")
    return content.count(b"/Type /Page\n") + content.count(b"/Type /Page ")
