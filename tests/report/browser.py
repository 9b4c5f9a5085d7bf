"""Headless Chromium that opens a report as a person would, and tells what it saw."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

_FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
_PATIENCE = 60.0


class Page:
    """A report that is open."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def run(self, script: str, *arguments: Any) -> Any:
        """The value of a piece of JavaScript."""
        return self.driver.execute_script(script, *arguments)

    def tell(self, command: str, **parameters: Any) -> Any:
        """Send a command of the DevTools protocol."""
        return self.driver.execute_cdp_cmd(command, parameters)

    def open(self, path: Path, *, width: int = 1600, scheme: str = "light") -> None:
        """Open a report in a window of this width, on a system with these colours, until it is drawn."""
        self.driver.get_log("browser")
        self.driver.get_log("performance")
        self.tell(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False
        )
        self.tell("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.driver.get(path.as_uri())
        self.wait("return document.documentElement.hasAttribute('data-drawn')")

    def wait(self, script: str) -> Any:
        """Wait until a piece of JavaScript gives something."""
        end = time.monotonic() + _PATIENCE
        while time.monotonic() < end:
            if value := self.run(script):
                return value
            time.sleep(0.05)
        raise AssertionError(f"waited in vain for: {script}")

    def complaints(self) -> list[str]:
        """What the browser's console says."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self) -> set[str]:
        """Everything that was asked for since the page was opened, but for what is in the page itself, and
        the browser's own pages."""
        messages = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        urls = {
            message["params"]["request"]["url"]
            for message in messages
            if message["method"] == "Network.requestWillBeSent"
        }
        return {url for url in urls if not url.startswith(("data:", "blob:", "chrome:", "chrome-untrusted:"))}

    def point(self, plot: str, series: int, place: int) -> None:
        """Move the mouse to a point of a plot."""
        x, y = self.run(
            """
            const div = document.getElementById(arguments[0]);
            div.scrollIntoView({block: "center", behavior: "instant"});
            const spot = div.calcdata[arguments[1]][arguments[2]];
            const {xaxis: x, yaxis: y} = div._fullLayout, box = div.getBoundingClientRect();
            return [box.left + x._offset + x.c2p(spot.x), box.top + y._offset + y.c2p(spot.y)];
            """,
            *(f"plot-{plot}", series, place),
        )
        self.tell("Input.dispatchMouseEvent", type="mouseMoved", x=x - 30, y=y + 30)
        self.tell("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def traces(self, plot: str) -> list[dict[str, Any]]:
        """The series that a plot shows, as the plotting library holds them."""
        return list(
            self.run(
                """
                return document.getElementById(arguments[0]).data.map((trace) => ({
                  name: trace.name, x: Array.from(trace.x), y: Array.from(trace.y), text: trace.text,
                  errors: trace.error_x?.array, customdata: trace.customdata,
                }));
                """,
                f"plot-{plot}",
            )
        )


@contextmanager
def chromium(profile: Path) -> Iterator[Page]:
    """A browser with an empty profile; the test is skipped where there is none."""
    binary, driver_path = shutil.which("chromium"), shutil.which("chromedriver")
    if binary is None or driver_path is None:
        pytest.skip("needs chromium and chromedriver (Debian: chromium, chromium-driver)")
    webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for flag in (*_FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver_path))
    try:
        yield Page(driver)
    finally:
        driver.quit()
