# Packs of texts and of device code (src/core/pack.h), which the library embeds. Their programs,
# make_pack and write_pack, are targets of src.
find_program(TG_XZ xz)

# tg_add_pack(file code input...) makes `file`.pack of texts, if `code` is `text`, or of the code
# that images have for an architecture. Machine code has units of 16 bytes, which lp and pb tell xz.
function(tg_add_pack file code)
    get_filename_component(name "${file}" NAME)
    set(model "lc=3,lp=0,pb=0")
    if(code MATCHES "^sm_")
        set(model "lc=0,lp=4,pb=4")
    endif()
    add_custom_command(OUTPUT "${file}.pack"
        COMMAND make_pack ${code} "${file}" ${ARGN}
        COMMAND "${TG_XZ}" --force --keep --format=lzma
                --lzma1=preset=9e,${model},dict=16MiB,nice=273 "${file}"
        COMMAND write_pack ${code} "${file}"
        COMMAND "${CMAKE_COMMAND}" -E rm "${file}" "${file}.lzma"
        DEPENDS make_pack write_pack ${ARGN}
        COMMENT "Compressing ${name}"
        VERBATIM)
endfunction()
