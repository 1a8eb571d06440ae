"""Checks the language of comments and documents: sentences, the field's words, width of documents.

Each function appends its faults, (path, line, message), to a list.
"""

import re

COMMENTED = ("src/", "cli/", "include/", "page/", "python/", "tests/")
COMMENTED_SUFFIXES = (".c", ".h", ".cu", ".cuh", ".def", ".js")
HASH_COMMENTED = re.compile(r"Makefile|(?:.*/)?CMakeLists\.txt|.*\.(?:cmake|py)|tools/.*")
DOCUMENT = re.compile(r"README\.md|CHANGELOG\.md|CONTRIBUTING\.md|docs/[^/]+\.md")
NOTE = re.compile(r"bench/notes/[^/]+\.md")  # records of measurements, only their width is checked
GLOSSARY = "docs/glossary.md"
DOCUMENT_WIDTH_MAX, TABLE_WIDTH_MAX = 120, 160
WIDE_DOCUMENTS = ("docs/benchmarks.md",)  # a tool writes it from long lists of results

# A comment that begins so is half a sentence: the reader must join it to a name or another line.
FRAGMENT = re.compile(
    r"(Of|The same|As above|As|Likewise|Alike|"
    r"Else|So many|Those|That of|What|Where|How|Which|Whether|Whose|[01] (where|if|when))(?![\w-])")
# A later sentence that begins so puts the object before its verb.
LATER = re.compile(r"(?<=[.;:] )Of(?= )(?! course)")
# A comment behind code that begins so completes the name before it.
BEHIND = re.compile(r"(of|that|those|whose|which|what|the same|as above|likewise|else)(?![\w-])")
# A comment of a function needs a verb. A word that ends in s, ed or n't counts as one, so that the
# check is never wrong about a sentence; it misses those whose nouns are in the plural.
VERBS = set("are be been can cannot come do does get give go has have is keep lie may might must "
            "need read run shall should take was were will would write see call return use set let "
            "do make hold fit begin become stay stop end".split())
FUNCTION = re.compile(r"(?!typedef|struct|return)[A-Za-z_][^=;]*\w\(|(export )?(async )?function ")
# The first sentence of a file needs a verb outside its clauses. It may begin with one (Declares),
# but not with a noun in the plural (Vectors of ...). A verb behind a colon (attend: runs ...) will
# do. The files of the ladders are left out, because they begin with the number and name of a rung.
HEADED = re.compile(r"(?:src/(?!kernels/(?:attention_)?ladder/)|cli/|dist/).*\.(?:c|h|def|cu|cuh)")
HEADER = re.compile(r"\s*/\*(.*?)\*/", re.S)
CLAUSE = re.compile(r",? \b(?:which|that|whose|where|when|while|if|as|before|after|until|since)\b"
                    r"[^,]*(?:,|$)")
PLURAL = re.compile(r"(?!Tests|Measures|Multiplies|Tells|Fills|Asserts)[A-Z][a-z]+s"
                    r"(,| (?:of|in|inside|that|to|as|for|beside|with|on|by|from|and) )")
HEADER_VERBS = VERBS | set(
    "adds appears applies apply becomes begins belongs brings checks chooses compares computes "
    "consists converts copies counts decides declares depends describes divides embeds ends fills "
    "finds forms gives hands holds instantiates joins keeps launches lets lists makes means "
    "measures move moves multiplies multiply names needs opens plans predicts puts reads replace "
    "replaces returns runs says serve serves share shares shows splits stands starts states stays "
    "stores surround takes tell tells touch turns uses waits works wraps writes".split())
# An example of --help, which argp would break at its right margin.
EXAMPLE = re.compile(r'"(  tilegemm [^"\n]*)\\n"')
HELP_WIDTH_MAX = 79
# Words of our own, each with the word that the field has for it.
PRIVATE_WORDS = {
    r"copy engines?": "TMA",
    r"mend(s|ed|ing)?": "repair",
    r"movers?": "relayout warp",
    r"panels? of k": "slab",
    r"panels? of queries": "query block",
    r"parts of k|split-K parts?": "splits",
    r"(?<!family )loose(ly)?": "unaligned",
    r"k[ -]steps?|\d+ steps of k|without steps of k": "values of k",
    r"keeps? step|in step with": "keep pace",
    r"pass(es)? over k": "walk over k",
    r"steps of (the|an|its) epilogue": "operations of the epilogue",
    r"compiler pass(es)?": "compilation",
    r"wild (elements?|ones)": "non-finite elements",
}
# Words of MPI and of CUDA, which each has for a thing of its own.
FIELD_WORDS = {"rank (MPI)", "rank (CUDA)"}
PRIVATE = re.compile(r"\b(" + "|".join(PRIVATE_WORDS) + r")\b", re.I)
PRIVATE_NAMES = {"mend": "repair", "mends": "repair", "mended": "repair", "mover": "relayout",
                 "movers": "relayout", "turned": "transposed", "boxed": "TMA", "loose": "unaligned",
                 "wild": "nonfinite", "lights": "few_keys", "shorts": "short_sequences"}
# A name that says `step` for the distance between two things: to neighbouring lines, rows or words.
# A step is the depth of k that one stage covers.
STEP_NAME = re.compile(
    r"(?:.*_)?(?:row|col|line|elem|lane|k|bias|shift|file|pattern|random)_?step(?:_.*)?", re.I)
USER_NAME = re.compile(r"(TGI_(FAMILY_cuda|IMAGE)_)?loose")  # a family, as users see it


def list_comments(text):
    """Yields (line, text, code line below) of each comment of C or JavaScript. The code line is
    None if the comment stands behind code."""
    literal = r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|`(?:\\.|[^`\\])*`'
    pattern = re.compile(rf"{literal}|/\*.*?\*/|(?:^ *//[^\n]*\n)+|//[^\n]*", re.S | re.M)
    for match in pattern.finditer(text):
        comment = match.group()
        if comment[0] in "\"'`":
            continue
        before = text[text.rfind("\n", 0, match.start()) + 1:match.start()]
        words = re.sub(r"^ *(/\*+|//|\*(?!/))", "", comment, flags=re.M).replace("*/", " ")
        below = None if before.strip() else text[match.end():].lstrip("\n").split("\n")[0]
        yield text.count("\n", 0, match.start()) + 1, " ".join(words.split()), below


def list_hash_comments(text):
    """Yields (line, text) of each comment of Python, CMake or a shell that has lines of its own."""
    for match in re.finditer(r"(?:^ *#(?![!:]).*\n)+", text, re.M):
        words = re.sub(r"^ *#", "", match.group(), flags=re.M)
        yield text.count("\n", 0, match.start()) + 1, " ".join(words.split())


def has_verb(sentence):
    words = re.findall(r"[A-Za-z']+", sentence)
    return any(word.lower() in VERBS or re.search(r"(s|ed|n't)$", word) for word in words)


def check_comments(path, text, faults):
    for line, comment in list_hash_comments(text) if HASH_COMMENTED.fullmatch(path) else ():
        found = FRAGMENT.match(comment)
        if found:
            faults.append((path, line, f"a comment that begins with '{found.group()}'; write a "
                                       "sentence with a subject and a verb"))
    if not path.startswith(COMMENTED) or not path.endswith(COMMENTED_SUFFIXES):
        return
    for line, comment, below in list_comments(text):
        check_words(path, line, comment, faults)
        found = (FRAGMENT if below is not None else BEHIND).match(comment)
        if found:
            faults.append((path, line, f"a comment that begins with '{found.group()}'; " + (
                "write a sentence with a subject and a verb" if below is not None else
                "name its subject")))
        if LATER.search(comment):
            faults.append((path, line, "a sentence that begins with 'Of'; begin with its subject"))
        if found or below is None:
            continue
        sentence = re.split(r"[.:;](?= |$)", comment)[0]
        if FUNCTION.match(below) and re.match("[A-Z]( |[a-z])", sentence) and \
                not has_verb(sentence):
            faults.append((path, line, f"a comment without a verb: '{sentence}'"))


def check_header(path, text, faults):
    header = HEADER.match(text) if HEADED.fullmatch(path) else None
    words = re.sub(r"^ ?\*", "", header.group(1), flags=re.M) if header else ""
    sentence = re.split(r"\.(?: |$)", " ".join(words.split()))[0]
    if not sentence or sentence.startswith("SPDX"):
        return
    begins_with_verb = re.match(r"[A-Z][a-z]+s,? ", sentence) and not PLURAL.match(sentence)
    told = set(re.findall(r"[a-z']+", CLAUSE.sub(" ", sentence.lower())))
    if not (begins_with_verb or told & HEADER_VERBS):
        faults.append((path, 1, f"a file that begins without a verb: '{sentence[:60]}'"))


def check_examples(path, text, faults):
    for example in EXAMPLE.finditer(text) if path.startswith("cli/") else ():
        if len(example.group(1)) > HELP_WIDTH_MAX:
            faults.append((path, text.count("\n", 0, example.start()) + 1,
                           f"an example of --help has at most {HELP_WIDTH_MAX} columns"))


def check_words(path, line, text, faults):
    """Refuses private words in prose. Words inside back quotes are code and may stay."""
    for found in PRIVATE.finditer(re.sub(r"`[^`]*`", lambda code: "`" * len(code.group()), text)):
        field = next(word for pattern, word in PRIVATE_WORDS.items()
                     if re.fullmatch(pattern, found.group(), re.I))
        faults.append((path, line, f"'{found.group()}' is a word of our own; write '{field}'"))


def check_glossary(path, text, faults):
    """Refuses a second row of a word, unless both rows are another field's own word."""
    if path != GLOSSARY:
        return
    rows = {}  # a word without its field -> the names that rows have had for it
    for line, words in enumerate(text.split("\n"), 1):
        if not re.match(r"\| (?!word \|)", words):
            continue
        for name in re.split(r"(?<!\\)\|", words)[1].strip().split(", "):
            word = re.sub(r" \(.*", "", name)
            names = rows.setdefault(word, set())
            if name in names or names and not {name, *names} <= FIELD_WORDS:
                faults.append((path, line, f"a second row of '{word}'; find another word"))
            names.add(name)


def check_document(path, text, faults):
    is_note = NOTE.fullmatch(path)
    if not DOCUMENT.fullmatch(path) and not is_note:
        return
    check_glossary(path, text, faults)
    is_code = False
    for line, words in enumerate(text.split("\n"), 1):
        if words.startswith("```"):
            is_code = not is_code
        if is_code:
            continue
        if not is_note:
            check_words(path, line, words, faults)
        limit = TABLE_WIDTH_MAX if words.lstrip().startswith("|") else DOCUMENT_WIDTH_MAX
        if len(words) > limit and path not in WIDE_DOCUMENTS:
            faults.append((path, line, f"{len(words)} columns; a document's line has at most "
                                       f"{limit}"))
