# Kernels of src/kernels for the simulator: a C++ compiler of the host makes assembly of them with
# the thread sanitizer's instrumentation, src/sim/sites.awk puts the simulator's names in it. The
# flags of the build type and of TG_SANITIZE do not reach them: counts are the same in every build.
# TG_SIM: ON, OFF, or AUTO (where there are a C++ compiler, awk, and fibers for the processor).
set(TG_SIM AUTO CACHE STRING "Simulator: ON, OFF, or AUTO (where it can be built)")
set_property(CACHE TG_SIM PROPERTY STRINGS ON OFF AUTO)

set(TG_HAVE_SIM OFF)
if(NOT TG_SIM STREQUAL "OFF")
    include(CheckLanguage)
    check_language(CXX)
    find_program(TG_AWK NAMES awk mawk gawk)
    set(missing "")
    if(NOT CMAKE_CXX_COMPILER)
        string(APPEND missing " a C++ compiler")
    endif()
    if(NOT TG_AWK)
        string(APPEND missing " awk")
    endif()
    if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|amd64|AMD64|aarch64|arm64)$")
        string(APPEND missing " fibers for ${CMAKE_SYSTEM_PROCESSOR}")
    endif()
    if(missing STREQUAL "")
        enable_language(CXX)
        set(TG_HAVE_SIM ON)
    elseif(TG_SIM STREQUAL "ON")
        message(FATAL_ERROR "TG_SIM=ON lacks:${missing}; install it, or pass -DTG_SIM=OFF")
    else()
        message(STATUS "simulator: left out, it lacks:${missing}")
    endif()
endif()

set(TG_SIM_FLAGS -std=c++17 -x c++ -S -O1 -g1 -fPIC -fvisibility=hidden -ffp-contract=off
    -fsanitize=thread -fno-builtin -fno-exceptions -fno-rtti -fno-threadsafe-statics
    -fno-optimize-sibling-calls -Wall -Wextra -Werror -Wno-unknown-pragmas -Wno-unused-parameter)

# tg_add_simulated_kernels(object source include_folder...): a command that makes `object` of a
# kernel source; the folders come before src/ and include/.
function(tg_add_simulated_kernels object source)
    set(folders ${ARGN} "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/include")
    list(TRANSFORM folders PREPEND "-I")
    set(sim "${PROJECT_SOURCE_DIR}/src/sim")
    add_custom_command(OUTPUT "${object}"
        COMMAND "${CMAKE_CXX_COMPILER}" ${TG_SIM_FLAGS} -include "${sim}/cuda_on_host.h" ${folders}
                -MD -MT "${object}" -MF "${object}.d" -o "${object}.compiled.s" "${source}"
        COMMAND "${TG_AWK}" -v host_header=cuda_on_host.h -f "${sim}/sites.awk"
                "${object}.compiled.s" > "${object}.s"
        COMMAND "${CMAKE_C_COMPILER}" -c -o "${object}" "${object}.s"
        DEPENDS "${source}" "${sim}/sites.awk"
        DEPFILE "${object}.d"
        BYPRODUCTS "${object}.compiled.s" "${object}.s"
        COMMENT "Compiling ${source} for the simulator"
        VERBATIM)
endfunction()
