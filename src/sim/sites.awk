# Assembly of an instrumented kernel in, the same out with four changes:
# 1. the thread sanitizer's functions, and memcpy and its kin, get the simulator's names, so that a
#    program may use the real sanitizer beside it;
# 2. section tgi_sim_sites gains an entry for each call (sites.c): how far its return address lies
#    behind that of the entry before, and its line. The section takes the place of the debug
#    information, which is left out with the paths that it holds;
# 3. section tgi_sim_variables gains an entry for each static variable: address, bytes. These are
#    the kernels' shared memory;
# 4. names of C++ become labels that the assembler forgets. They are an object's own, and long.
# Lines of the simulator's headers, *_on_host.h, count as the caller's (line 0).

/^[ \t]*\.section[ \t]+"?\.debug_/ { is_debug = 1; next }
/^[ \t]*\.(section|text|data|bss|ident)/ { is_debug = 0 }
is_debug { next }
/^[ \t]*\.(section|text|data|bss)/ { section = $1 == ".section" ? $2 : $1 }

/^[ \t]*\.file[ \t]/ {
    if ($2 !~ /^[0-9]+$/)
        next
    path = $0
    sub(/[ \t]md5[ \t].*$/, "", path)
    sub(/"[ \t]*$/, "", path)
    sub(/^.*[\/"]/, "", path)
    file_names[$2] = path
    next
}
/^[ \t]*\.loc[ \t]/ {
    file = $2
    line = $3
    next
}
/^[ \t]*\.(cfi_|addrsig)/ { next }

# A function that the linker would keep one copy of becomes each object's own, as its sites are.
/^[ \t]*\.section.*,comdat/ {
    print "\t.text"
    section = ".text"
    next
}
/^[ \t]*\.weak[ \t]/ { next }

# Returns the line with short names.
function shorten(line,    out, name) {
    out = ""
    while (match(line, /_Z[A-Za-z0-9_$.]+/)) {
        name = substr(line, RSTART, RLENGTH)
        if (!(name in short_names))
            short_names[name] = ".Ltgi_name" short_count++
        out = out substr(line, 1, RSTART - 1) short_names[name]
        line = substr(line, RSTART + RLENGTH)
    }
    return out line
}

{
    gsub(/__tsan_/, "tgi_sim_")
    if (/_Z/)
        $0 = shorten($0)
}

/^[ \t]*(call|callq|bl|blr)[ \t]/ {
    if ($2 ~ /^mem(cpy|move|set)/)
        sub(/mem/, "tgi_sim_mem")
    print
    if (!(file in file_numbers)) {
        used_files[file_count + 0] = file
        file_numbers[file] = file_count++
        if (file_count > 256)
            print "\t.error \"sites.awk: more files than an entry can name\""
    }
    if (file_names[file] ~ /_on_host[.]h$/)
        line = 0
    print "\t.pushsection tgi_sim_sites,\"a\",%progbits"
    if (section != site_section) {
        printf "\t.byte 0\n\t.long .Ltgi_site%d-.\n\t.long .Ltgi_files-.\n", site_count
        split("", last_lines)
        site_number = 0
    } else {
        printf "\t.uleb128 .Ltgi_site%d-.Ltgi_site%d\n", site_count, site_count - 1
    }
    number = file_numbers[file]
    step = line - last_lines[number]
    printf "\t.uleb128 %d\n", \
        (step < 0 ? -2 * step - 1 : 2 * step) * 2 + (number != site_number)
    if (number != site_number)
        printf "\t.byte %d\n", number
    printf "\t.popsection\n.Ltgi_site%d:\n", site_count
    last_lines[number] = line
    site_section = section
    site_number = number
    site_count++
    next
}

{ print }

/^[ \t]*\.comm[ \t]/ {
    split($2, variable, ",")
    printf "\t.pushsection tgi_sim_variables,\"a\",%%progbits\n"
    printf "\t.long %s-.\n\t.long %s\n\t.popsection\n", variable[1], variable[2]
}

END {
    print "\t.section .rodata.tgi_sim,\"a\",%progbits\n\t.balign 4\n.Ltgi_files:"
    for (i = 0; i < file_count; i++)
        printf "\t.long .Ltgi_file%d-.\n", i
    for (i = 0; i < file_count; i++)
        printf ".Ltgi_file%d:\n\t.asciz \"%s\"\n", i, file_names[used_files[i]]
}
