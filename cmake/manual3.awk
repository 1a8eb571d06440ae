# Writes a manual page of section 3 for each public function into the folder `out`, from the comments
# of the headers that it reads, and tilegemm.3, which lists them.
# usage: awk -v out=FOLDER -v version=X.Y.Z -f manual3.awk include/tilegemm.h ...

function escape(text) {
    gsub(/\\/, "\\e", text)
    gsub(/-/, "\\-", text)
    if (text ~ /^[.']/) text = "\\\\&" text
    return text
}

# Prints the lines of the last comment. Lines with a deeper indent are shown as they are.
function print_comment(page,    i, line, is_verbatim) {
    is_verbatim = 0
    for (i = 1; i <= comment_count; i++) {
        line = comment[i]
        if ((line ~ /^    /) != is_verbatim) {
            is_verbatim = !is_verbatim
            print (is_verbatim ? ".PP\n.nf" : ".fi") > page
        }
        print (line == "" ? ".PP" : escape(line)) > page
    }
    if (is_verbatim) print ".fi" > page
}

function write_page(    name, page, header, i, summary) {
    match(declaration, /tg_[a-z0-9_]+\(/)
    name = substr(declaration, RSTART, RLENGTH - 1)
    page = out "/" name ".3"
    header = FILENAME
    sub(/.*\//, "", header)
    summary = ""
    for (i = 1; i <= comment_count && summary !~ /\. /; i++) summary = summary comment[i] " "
    sub(/\. .*/, "", summary)
    print ".TH " toupper(name) " 3 \"\" \"tilegemm " version "\" \"Library functions\"" > page
    print ".SH NAME\n" name " \\- " escape(summary) > page
    print ".SH SYNOPSIS\n.nf\n#include <" header ">\n.PP" > page
    print escape(declaration) "\n.fi\n.SH DESCRIPTION" > page
    print_comment(page)
    print ".SH SEE ALSO\n.BR tilegemm (3)" > page
    close(page)
    print ".TP\n.BR " name " (3)\n" escape(summary) "." > (out "/tilegemm.3")
}

BEGIN {
    page = out "/tilegemm.3"
    print ".TH TILEGEMM 3 \"\" \"tilegemm " version "\" \"Library functions\"\n.SH NAME" > page
    print "tilegemm \\- matrix multiplication for any size and any layout" > page
    print ".SH SYNOPSIS\n.nf\n#include <tilegemm.h>\n.PP" > page
    print "cc \\fIfile.c\\fR $(pkg\\-config \\-\\-cflags \\-\\-libs tilegemm)\n.fi\n.SH DESCRIPTION" > page
}
FNR == 1 { is_first_comment = FNR == NR }
/^\/\*/ { comment_count = 0; is_comment = 1 }
is_comment {
    line = $0
    is_end = line ~ /\*\/ *$/
    sub(/^(\/\*| \*\/?) ?/, "", line)
    sub(/ *\*\/ *$/, "", line)
    if (line !~ /^-+ .* -+$/ && (line != "" || comment_count > 0)) comment[++comment_count] = line
    if (is_end) is_comment = 0
    if (is_end && is_first_comment) {
        print_comment(out "/tilegemm.3")
        print ".SH FUNCTIONS" > (out "/tilegemm.3")
        is_first_comment = 0
    }
    next
}
/^TG_API / { declaration = ""; is_declaration = 1; sub(/^TG_API /, "") }
/^static inline / {
    declaration = ""
    is_declaration = is_inline = 1
}
is_declaration {
    declaration = declaration (declaration == "" ? "" : "\n") $0
    if (is_inline && /\)$/) declaration = declaration ";"
    if (declaration ~ /;$/) { is_declaration = is_inline = 0; write_page() }
    next
}
!/^ *$/ { comment_count = 0 }
END { print ".SH SEE ALSO\n.BR tilegemm (1)" > (out "/tilegemm.3") }
