# TG_SANITIZE and TG_FUZZ hold for every target, because a sanitizer that sees half a program
# reports faults that are none. Their reports name functions and lines, which -g1 has.
if(TG_FUZZ)
    if(NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
        message(FATAL_ERROR "TG_FUZZ=ON with the compiler ${CMAKE_C_COMPILER_ID}: libFuzzer is "
                            "part of clang; configure with -DCMAKE_C_COMPILER=clang")
    endif()
    if(NOT TG_SANITIZE)
        set(TG_SANITIZE "address,undefined")
    endif()
    add_compile_options(-fsanitize=fuzzer-no-link)
endif()
if(TG_SANITIZE)
    add_compile_options(-fsanitize=${TG_SANITIZE} -fno-sanitize-recover=all
                        -fno-omit-frame-pointer -g1)
    add_link_options(-fsanitize=${TG_SANITIZE})
    # gcc warns that it does not see fences. None here orders threads: those of the kernels end
    # writes past the caches, and the barrier that follows does the ordering.
    if(TG_SANITIZE STREQUAL "thread" AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
        add_compile_options(-Wno-tsan)
    endif()
endif()
