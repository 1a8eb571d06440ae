# Optional parts of the project. Each has an option: ON stops if something is missing, OFF leaves
# the part out, AUTO leaves it out only if something is missing. One line says what is left out and
# which packages (of Debian and Ubuntu) bring it.

# tg_add_part_option(option title): the cache variable, AUTO by default.
function(tg_add_part_option option title)
    set(${option} AUTO CACHE STRING "${title}: ON, OFF, or AUTO (where all that it needs is there)")
    set_property(CACHE ${option} PROPERTY STRINGS ON OFF AUTO)
endfunction()

# tg_choose_part(option have title packages...): sets `have` to ON or OFF; the packages are those
# that are missing.
function(tg_choose_part option have title)
    set(${have} OFF PARENT_SCOPE)
    string(JOIN ", " missing ${ARGN})
    if(NOT ${option})
        message(STATUS "${title}: left out, ${option}=${${option}}")
    elseif(missing STREQUAL "")
        set(${have} ON PARENT_SCOPE)
    elseif(${option} STREQUAL "AUTO")
        message(STATUS "${title}: left out, it needs ${missing}")
    else()
        message(FATAL_ERROR "${option}=${${option}} lacks ${missing}; add that, or pass "
                            "-D${option}=OFF")
    endif()
endfunction()
