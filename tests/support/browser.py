"""Chromium with software GL for tests of pages, driven by Playwright: Debian's package, or the one CHROMIUM names."""

import os
import shutil
from contextlib import contextmanager

import pytest

FLAGS = ["--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--no-sandbox",
         "--disable-dev-shm-usage"]
HARMLESS = (  # messages of software GL that say nothing about a page
    "GPU stall due to ReadPixels",
)


def _missing() -> str | None:
    try:
        import playwright  # noqa: F401
    except ImportError:
        return "needs Playwright: pip install playwright"
    return None if chromium() else "needs Chromium: apt install chromium, or CHROMIUM=/path/to/it"


def chromium() -> str | None:
    """Path of the browser, if there is one."""
    return os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")


@contextmanager
def browser_page(*, offline=False, width=1000, height=640, errors=None, **context):
    """A page of a new browser. Errors of the page and of its console, but for the harmless ones, are appended to
    `errors`; without such a list they fail the test. Where the browser is missing the test is skipped, except in CI."""
    if reason := _missing():
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    from playwright.sync_api import sync_playwright

    found = [] if errors is None else errors

    def heard(message):
        if message.type in ("error", "warning") and not any(text in message.text for text in HARMLESS):
            found.append(f"{message.type}: {message.text}")

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        try:
            page = browser.new_context(offline=offline, viewport={"width": width, "height": height},
                                       **context).new_page()
            page.on("console", heard)
            page.on("pageerror", lambda error: found.append(f"exception: {error}"))
            yield page
        finally:
            browser.close()
    if errors is None:
        assert not found, "\n".join(found)
