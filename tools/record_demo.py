"""Record the motion of the high bar that comes with the package, and the picture of its replay in the README.

    python tools/record_demo.py        needs Playwright and Chromium
"""

import gzip
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from bunraku.cli.scenes.highbar import HighBar
from bunraku.replay_file import recorded
from bunraku.view.replay import replay_motion

TOP = Path(__file__).resolve().parents[1]
SHOWN = 0.78      # moment of the picture [s]


def main():
    motion = TOP / "src/bunraku/view/data/highbar.motion.gz"
    trajectory, _ = HighBar().run()
    motion.write_bytes(gzip.compress(replay_motion(trajectory, title=HighBar.title), 9, mtime=0))
    print(f"{motion.relative_to(TOP)}: {motion.stat().st_size / 1e3:.0f} kB")
    with TemporaryDirectory() as folder:
        replay = Path(folder) / "highbar.html"
        replay.write_text(recorded("highbar"), "utf-8")
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
