"""The tests and tools of the page share reports, and Debian's Chromium driven as a person would use
it."""
import json
import pathlib
import subprocess

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

VIEW_WAIT_S = 30
SCRIPT_WAIT_S = 120


def write_report(tilegemm, path, *words):
    subprocess.run([tilegemm, "report", *words, "-o", str(path)], check=True, timeout=300)


def read_json(tilegemm, *words, may_find=False):
    """Returns what the command prints. With may_find the simulator may find faults (status 1)."""
    done = subprocess.run([tilegemm, *words, "--json"], capture_output=True, text=True, timeout=300)
    if done.returncode != 0 and not (may_find and done.returncode == 1):
        raise RuntimeError(f"{words}: {done.stderr}")
    return json.loads(done.stdout)


class Browser:
    """Drives one window. Nothing but the report may be asked for, and the console must stay empty.
    """

    def __init__(self, width=1200, height=1000):
        options = webdriver.ChromeOptions()
        options.binary_location = "/usr/bin/chromium"
        for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                     "--disable-dev-shm-usage"):
            options.add_argument(word)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)
        self.driver.set_script_timeout(SCRIPT_WAIT_S)
        self.resize(width, height)

    def resize(self, width, height):
        """Sets the page's own size, which may be smaller than a window can be."""
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})

    def close(self):
        self.driver.quit()

    def open(self, path, state=""):
        """Opens the report anew with a state such as "view=ladder&m=64"."""
        self.driver.get("about:blank")
        self.driver.get(pathlib.Path(path).resolve().as_uri() + ("#" + state if state else ""))
        WebDriverWait(self.driver, VIEW_WAIT_S).until(
            lambda driver: driver.execute_script(
                "return performance.getEntriesByName('first view').length"))

    def list_faults(self):
        """Returns console messages, and addresses beyond the report that were asked for, since the
        last call."""
        faults = [entry["message"] for entry in self.driver.get_log("browser")]
        for entry in self.driver.get_log("performance"):
            event = json.loads(entry["message"])["message"]
            if event["method"] == "Network.requestWillBeSent":
                address = event["params"]["request"]["url"]
                if not address.startswith(("file:", "data:", "about:", "chrome:")):
                    faults.append("asked for " + address)
        return faults

    def find(self, selector):
        """Returns the first visible element that the selector names."""
        found = self.find_all(selector)
        if not found:
            raise LookupError(f"nothing visible is {selector}")
        return found[0]

    def find_all(self, selector):
        """Returns the visible elements. One script finds them all, because a question about each is
        slow."""
        return self.driver.execute_script(
            "return [...document.querySelectorAll(arguments[0])].filter(one =>"
            " one.getClientRects().length && one.checkVisibility({visibilityProperty: true}));",
            selector)

    def show(self, view):
        self.find(f"#tab-{view}").click()

    def type_number(self, key, value):
        field = self.find(f"input[type=number][data-key={key}]")
        field.send_keys(Keys.CONTROL, "a")
        field.send_keys(str(value), Keys.TAB)

    def choose(self, key, value):
        Select(self.find(f"select[data-key={key}]")).select_by_value(str(value))

    def read_state(self):
        """Returns what the address says. The page writes it a tenth of a second after a change."""
        return self.driver.execute_async_script(
            "const done = arguments[0]; setTimeout(() => done(Object.fromEntries("
            "new URLSearchParams(location.hash.slice(1)))), 150);")

    def read_tables(self, panel):
        """Returns the tables of a view, visible or folded. A table is a list of rows, a row a list
        of cells, with numbers as they were before they were formatted."""
        return self.driver.execute_script("""
            return [...document.querySelectorAll(`#panel-${arguments[0]} table`)].map(table =>
                [...table.tBodies[0].rows].map(row => [...row.cells].map(cell =>
                    cell.dataset.value !== undefined ? Number(cell.dataset.value)
                                                     : cell.textContent)));
        """, panel)
