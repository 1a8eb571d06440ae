# Compiles kernels of src/kernels for the simulator. A C++ compiler of the host makes assembly of
# them with the thread sanitizer's instrumentation, and src/sim/sites.awk puts the simulator's names
# in it. The flags of the build type and of TG_SANITIZE do not reach them, so that counts are the
# same in every build.
# They need fibers for the processor too.
tg_add_part_option(TG_SIM "Simulator")
if(TG_SIM)
    include(CheckLanguage)
    check_language(CXX)
endif()
find_program(TG_AWK NAMES awk mawk gawk)
set(missing "")
if(NOT CMAKE_CXX_COMPILER)
    list(APPEND missing "g++")
endif()
if(NOT TG_AWK)
    list(APPEND missing mawk)
endif()
if(NOT TG_XZ)
    list(APPEND missing xz-utils)
endif()
if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|amd64|AMD64|aarch64|arm64)$")
    list(APPEND missing "a processor of x86-64 or AArch64")
endif()
tg_choose_part(TG_SIM TG_HAVE_SIM "simulator" ${missing})
if(TG_HAVE_SIM)
    enable_language(CXX)
endif()

set(TG_SIM_FLAGS -std=c++17 -x c++ -S -Os -g1 -fPIC -fvisibility=hidden -ffp-contract=off
    -fsanitize=thread -fno-builtin -fno-exceptions -fno-rtti -fno-threadsafe-statics
    -fno-optimize-sibling-calls -fno-strict-aliasing -fno-ipa-icf -fno-crossjumping
    -fno-tree-tail-merge -Wall -Wextra ${TG_WERROR} -Wno-unknown-pragmas
    -Wno-unused-parameter)

# tg_add_simulated_kernels(kind object source include_folder...): a command that makes `object` of a
# kernel source; the folders come before src/ and include/. An argument -DNAME is a definition.
# `kind` is LADDER, whose additions and multiplications of FP32 are counted, or PRODUCTION.
function(tg_add_simulated_kernels kind object source)
    set(sim "${PROJECT_SOURCE_DIR}/src/sim")
    # Kernels include cuda_runtime.h, for which cuda_on_host.h stands.
    set(headers "${PROJECT_BINARY_DIR}/simulated_headers")
    file(CONFIGURE OUTPUT "${headers}/cuda_runtime.h" CONTENT "")
    set(folders ${ARGN} "${headers}" "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/include")
    set(definitions ${folders})
    list(FILTER definitions INCLUDE REGEX "^-D")
    list(FILTER folders EXCLUDE REGEX "^-D")
    list(TRANSFORM folders PREPEND "-I")
    set(flags ${TG_SIM_FLAGS} ${definitions})
    if(kind STREQUAL PRODUCTION)
        list(APPEND flags -DTGI_SIM_PLAIN -Wno-unused-function -Wno-maybe-uninitialized
             -Wno-sign-compare)
    endif()
    add_custom_command(OUTPUT "${object}"
        COMMAND "${CMAKE_CXX_COMPILER}" ${flags} -include "${sim}/cuda_on_host.h" ${folders}
                -MD -MT "${object}" -MF "${object}.d" -o "${object}.compiled.s" "${source}"
        COMMAND "${TG_AWK}" -f "${sim}/sites.awk"
                "${object}.compiled.s" > "${object}.s"
        COMMAND "${CMAKE_C_COMPILER}" -c -o "${object}" "${object}.s"
        DEPENDS "${source}" "${sim}/sites.awk"
        DEPFILE "${object}.d"
        BYPRODUCTS "${object}.compiled.s" "${object}.s"
        COMMENT "Compiling ${source} for the simulator"
        VERBATIM)
endfunction()
