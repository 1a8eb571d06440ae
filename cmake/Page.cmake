# The page of `tilegemm report`: page/ bundled into one HTML file, with the model compiled to
# WebAssembly. The command embeds that file, so reports need none of these tools.
tg_add_part_option(TG_PAGE "Page of reports")
find_program(TG_ESBUILD esbuild)
find_program(TG_WASM_CLANG clang)
find_program(TG_WASM_LINKER NAMES wasm-ld wasm-ld-14)
find_path(TG_WASM_LIBC_DIR libc.a PATHS /usr/lib/wasm32-wasi NO_DEFAULT_PATH)
find_path(TG_D3_DIR d3-scale/package.json PATHS /usr/share/nodejs NO_DEFAULT_PATH)
find_path(TG_D3_AXIS_DIR d3-axis/package.json PATHS /usr/share/nodejs NO_DEFAULT_PATH)
find_path(TG_D3_SELECTION_DIR d3-selection/package.json PATHS /usr/share/nodejs NO_DEFAULT_PATH)
set(missing "")
foreach(tool IN ITEMS TG_ESBUILD:esbuild TG_WASM_CLANG:clang TG_WASM_LINKER:lld
                      TG_WASM_LIBC_DIR:wasi-libc TG_D3_DIR:node-d3-scale
                      TG_D3_AXIS_DIR:node-d3-axis TG_D3_SELECTION_DIR:node-d3-selection)
    string(REPLACE ":" ";" parts "${tool}")
    list(GET parts 0 variable)
    list(GET parts 1 package)
    if(NOT ${variable})
        list(APPEND missing ${package})
    endif()
endforeach()
if(TG_WASM_CLANG)
    execute_process(COMMAND "${TG_WASM_CLANG}" --target=wasm32-wasi -print-libgcc-file-name
                    OUTPUT_VARIABLE runtime OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    if(NOT EXISTS "${runtime}")
        list(APPEND missing libclang-rt-dev-wasm32)
    endif()
endif()
tg_choose_part(TG_PAGE TG_HAVE_PAGE "page of reports" ${missing})
if(TG_PAGE STREQUAL "AUTO")
    string(JOIN " " missing ${missing})
    set(TG_PAGE_MISSING "it was built without: ${missing}; install these packages \
(tools/setup/packages demo does) and build again")
else()
    set(TG_PAGE_MISSING "it was configured with -DTG_PAGE=OFF")
endif()

# tg_add_page(page): commands that make the file `page`.
function(tg_add_page page)
    set(sources "${PROJECT_SOURCE_DIR}/page")
    set(folder "${CMAKE_CURRENT_BINARY_DIR}/page")
    file(MAKE_DIRECTORY "${folder}")
    # The planner with the planning half of the families of GPU kernels.
    set(c_sources page/model.c cli/fields.c src/core/arch.c src/core/attention_problem.c
        src/core/problem_arguments.c
        src/core/kernels.c src/core/overlap.c src/core/problem.c src/core/refusal.c
        src/core/status.c src/core/structs.c src/core/types.c src/core/validate.c
        src/plan/proposal.c src/plan/candidates.c src/plan/refused_problem.c)
    file(GLOB models RELATIVE "${PROJECT_SOURCE_DIR}" CONFIGURE_DEPENDS
         "${PROJECT_SOURCE_DIR}/src/model/*.c")
    file(GLOB families RELATIVE "${PROJECT_SOURCE_DIR}" CONFIGURE_DEPENDS
         "${PROJECT_SOURCE_DIR}/src/cuda/families/*.c")
    list(FILTER families EXCLUDE REGEX "_launch\\.c$")
    file(GLOB_RECURSE c_inputs CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/core/*"
         "${PROJECT_SOURCE_DIR}/src/model/*" "${PROJECT_SOURCE_DIR}/src/cuda/*"
         "${PROJECT_SOURCE_DIR}/src/plan/*" "${PROJECT_SOURCE_DIR}/src/kernels/*.h"
         "${PROJECT_SOURCE_DIR}/include/*")
    add_custom_command(OUTPUT "${folder}/model.wasm"
        COMMAND "${TG_WASM_CLANG}" --target=wasm32-wasi -std=c11 -Os -Wall -Wextra ${TG_WERROR}
                -D_GNU_SOURCE -ffp-contract=off -ffunction-sections -nostartfiles
                -Wl,--no-entry,--gc-sections,--strip-all -I. -Isrc -Iinclude ${c_sources}
                ${models} ${families} -o "${folder}/model.wasm"
        WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}"
        DEPENDS ${c_inputs} "${sources}/model.c" "${PROJECT_SOURCE_DIR}/cli/fields.c"
                "${PROJECT_SOURCE_DIR}/cli/fields.h"
        COMMENT "Compiling the model to WebAssembly"
        VERBATIM)

    # The ladder's sources by the names of their files.
    file(GLOB ladder CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/kernels/ladder/l*_*.cu")
    set(list "")
    foreach(source IN LISTS ladder)
        get_filename_component(name "${source}" NAME_WE)
        string(APPEND list "export {default as ${name}} from '${source}';\n")
    endforeach()
    file(CONFIGURE OUTPUT "${folder}/ladder.js" CONTENT "${list}" @ONLY)

    file(GLOB_RECURSE inputs CONFIGURE_DEPENDS "${sources}/*.js" "${sources}/*.css"
         "${sources}/*.html")
    add_custom_command(OUTPUT "${page}"
        COMMAND ${CMAKE_COMMAND} -E env NODE_PATH=${TG_D3_DIR}
                "${TG_ESBUILD}" "${sources}/app.js" --bundle --minify --format=iife
                --target=es2020 --log-level=warning --loader:.wasm=binary --loader:.cu=text
                "--alias:model.wasm=${folder}/model.wasm" "--alias:ladder=${folder}/ladder.js"
                "--outfile=${folder}/page.js"
        COMMAND "${TG_ESBUILD}" "${sources}/styles/style.css" --bundle --minify --log-level=warning
                "--outfile=${folder}/page.css"
        COMMAND ${CMAKE_COMMAND} "-DTEMPLATE=${sources}/template.html" "-DFOLDER=${folder}"
                "-DPAGE=${page}" -P "${PROJECT_SOURCE_DIR}/cmake/join_page.cmake"
        DEPENDS ${inputs} ${ladder} "${folder}/ladder.js" "${folder}/model.wasm"
                "${PROJECT_SOURCE_DIR}/cmake/join_page.cmake"
        BYPRODUCTS "${folder}/page.js" "${folder}/page.css"
        COMMENT "Bundling the page of reports"
        VERBATIM)
endfunction()
