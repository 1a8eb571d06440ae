#!/usr/bin/env python3
"""Tests the page as a whole in a browser: console, network, paper, contrast, keyboard, fields,
address, phone.

usage: test_page.py TILEGEMM
"""
import os
import sys
import unittest

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from page_case import PageCase, SHAPE, SMALL_TEXTS, VIEWS, tilegemm

CONTROLS = "input, select, button, summary, [tabindex='0']"

# This script finds words of tables that lie on more than one line; names may break behind an
# underscore.
BROKEN_WORDS = """
    const broken = [], range = document.createRange();
    for (const cell of document.querySelectorAll(`#panel-${arguments[0]} .table :is(td, th)`)) {
        const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
        while (texts.nextNode()) {
            for (const {0: word, index} of texts.currentNode.data.matchAll(/[A-Za-z]+/g)) {
                range.setStart(texts.currentNode, index);
                range.setEnd(texts.currentNode, index + word.length);
                if (range.getClientRects().length > 1)
                    broken.push(word);
            }
        }
    }
    return broken;"""


class Page(PageCase):
    def test_faults_are_seen(self):
        """The checks of console and network can fail."""
        run = self.browser.driver.execute_script
        run("console.error('a fault')")
        self.assertIn("a fault", str(self.browser.list_faults()))
        run("document.querySelector('meta[http-equiv]').remove(); fetch('http://127.0.0.1:9/x')"
            ".catch(() => {})")
        ActionChains(self.browser.driver).pause(0.3).perform()
        self.assertTrue(self.browser.list_faults())

    def test_hatches_of_every_view(self):
        """Pattern names belong to the document: each chart has its own, also after others."""
        for view in ("reads", "ladder"):
            self.browser.show(view)
        names = self.browser.driver.execute_script(
            "return [...document.querySelectorAll('pattern')].map(one => one.id)")
        self.assertGreater(len(names), 5)
        self.assertEqual(len(names), len(set(names)))

    def test_print_has_the_tables_and_the_choice(self):
        self.browser.show("reads")
        run = self.browser.driver.execute_script
        count = "return document.querySelectorAll('#panel-reads details[open]').length"
        self.assertEqual(run(count), 0)
        run("dispatchEvent(new Event('beforeprint'))")
        self.assertEqual(run(count), 3)
        run("dispatchEvent(new Event('afterprint'))")
        self.assertEqual(run(count), 0)
        self.browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
        try:
            self.assertIn("Reads counted; edges, tile", self.browser.find("header").text)
            self.assertEqual(self.browser.find_all("header .controls"), [])
        finally:
            self.browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})

    def test_paper_cuts_nothing_off(self):
        """Tables, drawings and sources are whole on a sheet, whatever a screen scrolls."""
        run = self.browser.driver.execute_script
        self.browser.resize(794, 1000)
        self.browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
        try:
            for view in VIEWS:
                self.browser.open(self.path, f"view={view}")
                run("dispatchEvent(new Event('beforeprint'))")
                wide = run("""
                    return [...document.querySelectorAll(
                        '.table, .scroll, .source, .grid-of-numbers')].filter(
                            one => one.offsetParent && one.scrollWidth > one.clientWidth + 1)
                        .map(one => `${one.textContent.slice(0, 40)}: ${one.scrollWidth}`);""")
                self.assertEqual(wide, [], view)
                self.assertEqual(self.browser.find_all(".controls, .control"), [], view)
                self.assertEqual(run(BROKEN_WORDS, view), [], view)
        finally:
            self.browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
            self.browser.resize(1200, 1000)

    def test_contrast(self):
        """Every text stands out from the ground by 4.5 to 1 at least, in light and in dark."""
        for theme in ("light", "dark"):
            for view in VIEWS:
                self.browser.open(self.path, f"view={view}&theme={theme}")
                faint = self.browser.driver.execute_script("""
                    const rgb = text => text.match(/[\\d.]+/g).map(Number);
                    const part = one => one <= 0.04045 ? one / 12.92
                        : ((one + 0.055) / 1.055) ** 2.4;
                    const light = ([r, g, b]) => 0.2126 * part(r / 255) +
                        0.7152 * part(g / 255) + 0.0722 * part(b / 255);
                    const ground = one => {
                        const colour = rgb(getComputedStyle(one).backgroundColor);
                        return colour.length === 4 && colour[3] < 1 ? ground(one.parentElement)
                                                                    : colour;
                    };
                    const isText = one => [...one.childNodes].some(
                        node => node.nodeType === 3 && node.textContent.trim());
                    return [...document.body.querySelectorAll('*')].filter(one => isText(one) &&
                        one.checkVisibility() && !one.matches('.chosen, title, script, option'))
                        .map(one => {
                            const style = getComputedStyle(one);
                            const [a, b] = [rgb(one.ownerSVGElement ? style.fill : style.color),
                                            ground(one)].map(light).sort((x, y) => y - x);
                            return [(a + 0.05) / (b + 0.05), one.textContent.slice(0, 30)];
                        }).filter(([ratio]) => !(ratio >= 4.5));""")
                self.assertEqual(faint, [], (view, theme))
                if theme == "light":
                    self.check_names(view)
                    self.check_sizes_of_text(view)

    def check_sizes_of_text(self, view):
        """No text is smaller than 11 pixels, on a desk and on a phone."""
        for width in (400, 1200):
            self.browser.resize(width, 1000)
            ActionChains(self.browser.driver).pause(0.1).perform()
            self.assertEqual(self.browser.driver.execute_script(SMALL_TEXTS), [], (view, width))

    def check_names(self, view):
        """Each control, picture and region has a name, and each id is its own."""
        nameless, ids = self.browser.driver.execute_script("""
            const isNamed = one => one.ariaLabel || one.labels?.length || one.title ||
                one.getAttribute('aria-labelledby') ||
                one.matches('button, summary, pre') && one.textContent.trim();
            return [[...document.querySelectorAll("input, select, button, summary, " +
                "[role=img], [role=region], [role=application], [tabindex='0']")].filter(
                one => one.checkVisibility() && !isNamed(one)).map(one => one.outerHTML),
                [...document.querySelectorAll('[id]')].map(one => one.id)];""")
        self.assertEqual([one[:80] for one in nameless], [], view)
        self.assertEqual(len(ids), len(set(ids)), view)

    def test_keyboard_alone(self):
        """Tab reaches controls and tabs, arrows change tabs."""
        body = self.browser.find("body")
        body.send_keys(Keys.TAB)
        reached = set()
        for _ in range(12):
            focus = self.browser.driver.switch_to.active_element
            reached.add(focus.get_attribute("data-key") or focus.get_attribute("role"))
            if focus.get_attribute("role") == "tab":
                break
            focus.send_keys(Keys.TAB)
        self.assertLessEqual({"m", "n", "k", "kernel", "tile", "chip", "tab"}, reached)
        tab = self.browser.driver.switch_to.active_element
        tab.send_keys(Keys.TAB)
        theme = self.browser.driver.switch_to.active_element
        self.assertEqual(theme.get_attribute("data-key"), "theme")
        theme.send_keys(Keys.SHIFT, Keys.TAB)
        tab.send_keys(Keys.END)
        self.assertEqual(self.browser.driver.switch_to.active_element.get_attribute(
            "aria-selected"), "true")
        self.browser.driver.switch_to.active_element.send_keys(Keys.HOME)
        self.assertTrue(self.browser.find("[role=tabpanel]"))

    def press(self, *keys):
        ActionChains(self.browser.driver).send_keys(*keys).perform()

    def test_every_control_by_keyboard(self):
        """Tab reaches each control of each view, and keys work it."""
        run = self.browser.driver.execute_script
        for view in VIEWS:
            self.browser.open(self.path, f"view={view}")
            wanted = run("""
                const all = [...document.querySelectorAll(
                    `#panel-${arguments[0]} :is(${arguments[1]})`)].filter(
                    one => one.checkVisibility() && !one.disabled);
                all.forEach((one, i) => { one.dataset.place = i; });
                document.getElementById(`tab-${arguments[0]}`).focus();
                return all.length;""", view, CONTROLS)
            reached = set()
            for _ in range(wanted + 20):
                self.press(Keys.TAB)
                reached.add(run("return document.activeElement.dataset.place"))
            self.assertLessEqual({str(place) for place in range(wanted)}, reached, view)
        self.browser.open(self.path, "view=reads")
        run("document.querySelector('#panel-reads summary').focus()")
        self.press(Keys.ENTER)
        self.assertTrue(self.browser.find("#panel-reads details[open] table"))
        self.browser.open(self.path, "view=ladder")
        run("document.querySelector('#panel-ladder select[data-key=sweep]').focus()")
        self.press(Keys.ARROW_DOWN)
        self.assertEqual(self.browser.read_state()["sweep"], "m")
        self.browser.open(self.path, "view=accesses")
        run("document.querySelector('#panel-accesses button').focus()")
        self.press(Keys.SPACE)
        self.assertEqual(self.browser.read_state()["kernel"], "naive")

    def test_a_field_that_changes_fast(self):
        """The address keeps up: a browser refuses a page that sets some 200 of them in 10 s, and
        says so in the console."""
        self.browser.open(self.path, "view=accesses")
        self.browser.driver.execute_script("""
            const field = document.querySelector('input[type=number][data-key=m]');
            for (let m = 1; m <= 300; m++) {
                field.value = m;
                field.dispatchEvent(new Event('input'));
            }""")
        self.assertEqual(self.browser.read_state()["m"], "300")
        self.assertEqual(self.browser.list_faults(), [])

    def test_state_in_the_address(self):
        self.browser.open(self.path, "view=ladder&m=77&kernel=padded&chip=t4&tile=bogus&x=1")
        self.assertEqual(self.browser.find("select[data-key=kernel]").get_attribute("value"),
                         "padded")
        self.assertEqual(self.browser.find("h1").text, "D = A B: 77 x 52 x 44 on T4")
        self.assertEqual(self.browser.find("[role=tab][aria-selected=true]").text, "The ladder")
        self.assertIn("tile = bogus, pass a whole number from 1 to 128; 16 is shown",
                      self.browser.find("header").text)
        self.browser.choose("tile", 32)
        self.browser.type_number("m", 78)
        self.assertNotIn("Refused", self.browser.find("header").text)
        self.browser.open(self.path, "view=none&m=-5&n=1e99&kernel=%3Cb%3E&chip=none&tile=129")
        self.assertEqual(len(self.browser.find_all("[role=tabpanel]")), 1)
        told = self.browser.find("header").text
        for text in ("m = -5, pass a whole number from 1 to 1,000,000; 60 is shown", "n = 1e99",
                     "kernel = <b>, pass one of naive", "chip = none",
                     "tile = 129, pass a whole number from 1 to 128; 16 is shown"):
            self.assertIn(text, told)
        self.browser.open(self.path, "kernel=register_tile&tile=65")  # the rung has 64 and 128
        self.assertIn("tile = 65; ", self.browser.find("header").text)

    def test_fields_refuse(self):
        """What is no size stays as it was typed, with the range, and the page stays as it was."""
        for key, text in (("m", "1e9"), ("n", "3.7"), ("k", "0"), ("m", "-4"), ("k", "1000001")):
            self.browser.type_number(key, text)
            field = self.browser.find(f"input[data-key={key}]")
            self.assertEqual((field.get_attribute("value"), field.get_attribute("aria-invalid")),
                             (text, "true"))
            reason = self.browser.find("#" + field.get_attribute("aria-describedby")).text
            self.assertIn(f"{text} is refused: pass a whole number from 1 to 1,000,000", reason)
            self.assertEqual(self.browser.find("h1").text, "D = A B: 60 x 52 x 44 on H200 SXM")
            self.browser.type_number(key, dict(zip("mnk", SHAPE))[key])
            self.assertEqual(self.browser.find_all(".refusal"), [])
        for view in ("walk", "owners"):
            self.browser.show(view)
            self.browser.type_number("blockRow", 99999)
            self.assertIn("99999 is refused: pass a whole number from 0 to 3. 0 is shown",
                          self.browser.find(".refusal").text)
            self.browser.type_number("blockRow", 3)
            self.assertEqual(self.browser.find_all(".refusal"), [])
            self.browser.type_number("m", 20)  # gives two rows of tiles
            self.assertIn("3 is refused", self.browser.find(".refusal").text)
            self.type_sizes(*SHAPE)
            self.browser.type_number("blockRow", 0)

    def test_labels_of_axes(self):
        """Titles of axes stand clear of the numbers, however long those are."""
        run = self.browser.driver.execute_script
        for state in ("view=roofline", "view=ladder&chip=b200&m=4096&n=4096&k=4096",
                      "view=roofline&m=4096&n=4096&k=4096&row=cuda_simt_sm80_fp32_64x128x16"):
            self.browser.open(self.path, state)
            overlaps = run("""
                const meets = (a, b) => a.left < b.right && b.left < a.right &&
                                        a.top < b.bottom && b.top < a.bottom;
                return [...document.querySelectorAll('[role=tabpanel]:not([hidden]) svg.plot')]
                    .map(plot => {
                        const place = one => one.getBoundingClientRect();
                        const ticks = [...plot.querySelectorAll('.tick text')].filter(
                            tick => tick.textContent);
                        return ticks.filter(tick => tick.textContent.length >= 6).length && ticks
                            .filter(tick => [...plot.querySelectorAll('text.title')]
                                .some(title => meets(place(title), place(tick)))).length;
                    });""")
            self.assertEqual(set(overlaps), {0}, state)
        # Names of points and of roofs stand clear of each other.
        names = [one.rect for one in self.browser.find_all("#panel-roofline svg.plot text.note")]
        self.assertGreater(len(names), 6)
        for i, one in enumerate(names):
            for other in names[:i]:
                self.assertFalse(
                    one["x"] < other["x"] + other["width"] and other["x"] < one["x"] + one["width"]
                    and one["y"] + 2 < other["y"] + other["height"] - 2
                    and other["y"] + 2 < one["y"] + one["height"] - 2, (one, other))

    def test_every_chart_has_a_table(self):
        for tab in self.browser.find_all("[role=tab]"):
            tab.click()
            for figure in self.browser.find_all("figure"):
                summary = figure.find_element("css selector", "summary")
                if not figure.find_element("css selector", "details").get_attribute("open"):
                    summary.click()
                self.assertTrue(figure.find_elements("css selector", "tbody tr"), tab.text)
            for drawing in self.browser.find_all("[role=tabpanel] svg[role=img]"):
                self.assertTrue(drawing.get_attribute("aria-label"), tab.text)

    def test_phone(self):
        """From 320 pixels on nothing sticks out sideways, in light and in dark."""
        read, grounds = self.browser.driver.execute_script, set()
        self.browser.resize(320, 740)
        try:
            for theme in ("light", "dark"):
                self.browser.choose("theme", theme)
                for tab in self.browser.find_all("[role=tab]"):
                    read("arguments[0].click()", tab)
                    self.assertEqual(read("return document.documentElement.scrollWidth"), 320,
                                     tab.get_attribute("id"))
                grounds.add(read("return getComputedStyle(document.body).backgroundColor"))
            self.assertEqual(len(grounds), 2)
            self.browser.show("ladder")
            hidden = read("""
                const listing = document.querySelector('.source');
                const right = listing.getBoundingClientRect().left + listing.clientWidth;
                return [...listing.querySelectorAll('.counted > *')].filter(
                    cell => cell.getBoundingClientRect().right > right + 1)
                    .map(cell => cell.textContent);""")
            self.assertEqual(hidden, [])  # counts and source are on the screen together
        finally:
            self.browser.resize(1200, 1000)


if __name__ == "__main__":
    tilegemm[0] = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
