"""The tests of the views that draw a kernel at work share this case."""
import os
import re
import shutil
import tempfile
import unittest

from selenium.webdriver.common.action_chains import ActionChains

from browser import Browser, write_report

# These tiles are looked at, those of the table's rows and others. `tiled` takes few sizes and is
# tested by name.
TILES = {"naive": (2, 4, 7, 16, 32), "coalesced": (1, 2, 4, 12, 16, 32),
         "edges": (2, 3, 4, 5, 8, 12, 16, 20, 32), "transposed": (12, 32), "padded": (9, 32),
         "register_column": (8, 16, 64), "register_tile": (64, 128), "vector": (128,),
         "buffered": (128,), "warp_tile": (128,)}
tilegemm = ["tilegemm"]  # path of the command; the program that runs the tests sets it


def read_numbers(text):
    """Returns the whole numbers of a text, in order."""
    return [int(word.replace(",", "")) for word in re.findall(r"\d[\d,]*", text)]


class PictureCase(unittest.TestCase):
    shape = "96x80x64"  # the shape of the report
    view = ""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="tilegemm-page-")
        cls.path = os.path.join(cls.folder, "report.html")
        write_report(tilegemm[0], cls.path, cls.shape, "--gpu", "h200")
        cls.browser = Browser()
        cls.driver = cls.browser.driver

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        shutil.rmtree(cls.folder)

    def setUp(self):
        self.browser.open(self.path, f"view={self.view}")

    def tearDown(self):
        self.assertEqual(self.browser.list_faults(), [])

    def link(self, **state):
        """Follows a link to the view at a state."""
        words = "&".join(f"{key}={value}" for key, value in {"view": self.view, **state}.items())
        # The page hears of the change after this script, and a timer comes later still.
        self.driver.execute_async_script(
            "const done = arguments[1]; location.hash = arguments[0]; setTimeout(done, 20);", words)

    def read(self, selector):
        return self.browser.find(selector).text

    def count(self, selector):
        return self.driver.execute_script(
            "return document.querySelectorAll(arguments[0]).length",
            f"#panel-{self.view} {selector}")

    def click(self, text):
        """Clicks the button that is called `text`."""
        found = [button for button in self.browser.find_all("button") if button.text == text]
        self.assertEqual(len(found), 1, text)
        found[0].click()

    def click_at(self, selector, across, down):
        """Clicks at a place of a drawing, as parts of its width and height."""
        element = self.browser.find(selector)
        self.driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
        size = element.rect
        ActionChains(self.driver).move_to_element_with_offset(
            element, round(size["width"] * (across - 0.5)),
            round(size["height"] * (down - 0.5))).click().perform()

    def focus(self, element):
        self.driver.execute_script("arguments[0].focus()", element)

    def press(self, *keys):
        """Presses keys on the element that has the focus."""
        ActionChains(self.driver).send_keys(*keys).perform()

    def read_table(self, selector):
        """Returns the rows of a table, visible or folded, as texts."""
        return self.driver.execute_script(
            "return [...document.querySelector(arguments[0]).tBodies[0].rows]"
            ".map(row => [...row.cells].map(cell => cell.dataset.value ?? cell.textContent))",
            f"#panel-{self.view} {selector}")
