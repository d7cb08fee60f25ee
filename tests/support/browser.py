"""A headless Chromium for tests of pages; tests are skipped, with a reason, where there is none."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@contextmanager
def chromium() -> Iterator[Any]:
    """One browser: the system's, or Playwright's own."""
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    path = next((found for name in NAMES if (found := shutil.which(name))), None)
    with playwright.sync_playwright() as running:
        try:
            browser = running.chromium.launch(
                executable_path=path, args=["--no-sandbox", "--disable-gpu"]
            )
        except playwright.Error as error:
            pytest.skip(f"no browser: {str(error).splitlines()[0]}")
        try:
            yield browser
        finally:
            browser.close()


class Seen:
    """A page that remembers what it complained about and what it asked for."""

    def __init__(self, browser: Any, **options: Any) -> None:
        self.context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}} | options)
        self.page = self.context.new_page()
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.dialogs: list[str] = []
        self.page.on("console", self._listen)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("dialog", self._dismiss)

    def open(self, path: Any) -> Any:
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("html[data-ready=yes]", state="attached")
        return self.page

    def check(self) -> None:
        """Nothing went wrong, nothing was fetched, nobody was asked."""
        assert self.complaints == []
        assert [u for u in self.requests if not u.startswith(("file:", "data:", "blob:"))] == []
        assert sum(u.startswith("file:") for u in self.requests) == 1
        assert self.dialogs == []

    def close(self) -> None:
        self.context.close()

    def _listen(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)

    def _dismiss(self, dialog: Any) -> None:
        self.dialogs.append(dialog.message)
        dialog.dismiss()
