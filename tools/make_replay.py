"""Make the replay of the high bar that the package carries, and its picture in the README (needs Playwright, Chromium).

    python tools/make_replay.py
"""

import shutil
from pathlib import Path

from bunraku.cli.scenes.highbar import HighBar
from bunraku.view.replay import replay_html

TOP = Path(__file__).resolve().parents[1]
MOST = 2_000_000  # bytes
SHOWN = 0.78      # moment of the picture [s]


def main():
    replay = TOP / "src/bunraku/view/data/highbar.html"
    replay.parent.mkdir(exist_ok=True)
    trajectory, _ = HighBar().run()
    size = replay_html(trajectory, replay, title=HighBar.title).stat().st_size
    print(f"{replay.relative_to(TOP)}: {size / 1e6:.2f} MB")
    if size > MOST:
        raise SystemExit(f"larger than {MOST / 1e6:g} MB")
    picture(replay, TOP / "docs/images/replay.png")


def picture(replay: Path, path: Path):
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=[
            "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--no-sandbox"])
        page = browser.new_page(viewport={"width": 1000, "height": 600}, device_scale_factor=2)
        page.goto(f"{replay.as_uri()}#t={SHOWN}")
        page.evaluate("replay.ready")
        page.wait_for_timeout(2000)
        page.screenshot(path=path)
        browser.close()
    print(path.relative_to(TOP))


if __name__ == "__main__":
    main()
