# Assembly of an instrumented kernel in, the same out with three changes:
# 1. the thread sanitizer's functions, and memcpy and its kin, get the simulator's names, so that a
#    program may use the real sanitizer beside it;
# 2. section tgi_sim_sites gains an entry for each call: return address, file, line, the first two
#    relative to themselves. It takes the place of the debug information, which is left out with the
#    paths that it holds;
# 3. section tgi_sim_variables gains an entry for each static variable: address, bytes. These are
#    the kernels' shared memory.
# Lines of the simulator's headers, *_on_host.h, count as the caller's (line 0).

/^[ \t]*\.section[ \t]+"?\.debug_/ { is_debug = 1; next }
/^[ \t]*\.(section|text|data|bss|ident)/ { is_debug = 0 }
is_debug { next }

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
    next
}
/^[ \t]*\.weak[ \t]/ { next }

{
    gsub(/__tsan_/, "tgi_sim_")
}

/^[ \t]*(call|callq|bl|blr)[ \t]/ {
    if ($2 ~ /^mem(cpy|move|set)/)
        sub(/mem/, "tgi_sim_mem")
    print
    site_count++
    used_files[file] = 1
    printf ".Ltgi_site%d:\n\t.pushsection tgi_sim_sites,\"a\",%%progbits\n", site_count
    printf "\t.long .Ltgi_site%d-.\n\t.long .Ltgi_file%d-.\n\t.long %d\n\t.popsection\n", \
        site_count, file, file_names[file] ~ /_on_host[.]h$/ ? 0 : line
    next
}

{ print }

/^[ \t]*\.comm[ \t]/ {
    split($2, variable, ",")
    printf "\t.pushsection tgi_sim_variables,\"a\",%%progbits\n"
    printf "\t.long %s-.\n\t.long %s\n\t.popsection\n", variable[1], variable[2]
}

END {
    print "\t.section .rodata.tgi_sim,\"a\",%progbits"
    for (used in used_files)
        printf ".Ltgi_file%d:\n\t.asciz \"%s\"\n", used, file_names[used]
}
