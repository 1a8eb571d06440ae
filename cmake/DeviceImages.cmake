# CUDA device code: nvcc compiles each source to one image for all architectures. For each
# architecture, images are compressed to packs (src/core/pack.h), which are embedded in the
# library. Where the CUDA backend is left out, the host code still plans for chips, and no context
# can be made.
tg_add_part_option(TG_CUDA "CUDA backend")
set(TG_CUDA_ARCHITECTURES "75;80;89;90a;ptx" CACHE STRING
    "Ascending chips with images; ptx: PTX for later ones; empty: none, for tests of the host code")

find_program(TG_NVCC nvcc HINTS "$ENV{CUDA_HOME}/bin" "$ENV{CUDA_PATH}/bin" /usr/local/cuda/bin)
set(missing "")
if(NOT TG_NVCC AND NOT TG_CUDA_ARCHITECTURES STREQUAL "")
    set(missing "NVIDIA's CUDA toolkit (nvcc on PATH, in CUDA_HOME/bin, or -DTG_NVCC=PATH)")
elseif(NOT TG_XZ AND NOT TG_CUDA_ARCHITECTURES STREQUAL "")
    set(missing "xz (apt-get install xz-utils)")
endif()
tg_choose_part(TG_CUDA TG_HAVE_CUDA "CUDA backend" ${missing})
if(NOT TG_HAVE_CUDA)
    set(TG_CUDA_ARCHITECTURES "")
elseif(NOT TG_CUDA_ARCHITECTURES STREQUAL "")
    message(STATUS "CUDA backend: images for ${TG_CUDA_ARCHITECTURES} by ${TG_NVCC}")
    execute_process(COMMAND "${TG_NVCC}" --version OUTPUT_VARIABLE nvcc_text)
    string(REGEX MATCH "release ([0-9]+)\\.([0-9]+)" unused "${nvcc_text}")
    math(EXPR TG_CUDA_VERSION "1000 * ${CMAKE_MATCH_1} + 10 * ${CMAKE_MATCH_2}")
else()
    message(STATUS "CUDA backend: host code alone, as TG_CUDA_ARCHITECTURES is empty; "
                   "-UTG_CUDA_ARCHITECTURES compiles the images")
endif()

# Sets `options` to the -gencode options, and `names` to the architectures of the code, for a source
# of the range `range`: "80-89" is both ends and what lies between, "75-" has no end, "90a"
# is that architecture alone. "75+" is machine code for chips of that major version, and its PTX for
# later ones, whose driver compiles it if a row of such a source is named: they have better ones.
# Machine code runs on later chips of its major version, so that an architecture has none of a
# source if an earlier one of its major version has. Other PTX is for chips later than all images,
# so a range that ends has none. The compiler's front end takes most of the time, so that it runs
# once for sm_90 and for the PTX. "75-a" is "75-" of a source that has rows or code for sm_90a
# alone, for which it runs once more.
function(tg_choose_architectures range options names)
    set(chosen "")
    set(found "")
    set(majors "")
    string(REGEX MATCH "^([0-9]+)-([0-9]*)(a?)$" is_range "${range}")
    set(first "${CMAKE_MATCH_1}")
    set(last "${CMAKE_MATCH_2}")
    set(is_shared OFF)
    if(is_range AND last STREQUAL "" AND "${CMAKE_MATCH_3}" STREQUAL "")
        set(is_shared ON)
    endif()
    string(REGEX MATCH "^([0-9]+)\\+$" is_first "${range}")
    if(is_first)
        set(first "${CMAKE_MATCH_1}")
    endif()
    string(REGEX REPLACE "[0-9][a-z]*$" "" first_major "${first}")
    foreach(chip IN LISTS TG_CUDA_ARCHITECTURES)
        string(REGEX REPLACE "[0-9][a-z]*$" "" major "${chip}")
        if(is_first AND (chip STREQUAL "ptx" OR
                         (chip VERSION_GREATER first AND NOT major STREQUAL first_major)))
            list(APPEND chosen -gencode=arch=compute_${first},code=compute_${first})
            list(APPEND found compute_${first})
            break()
        elseif(chip STREQUAL "ptx")
            if(is_range AND last STREQUAL "")
                list(APPEND chosen -gencode=arch=compute_90,code=compute_90)
                list(APPEND found compute_90)
            endif()
        elseif((NOT is_range AND chip STREQUAL range) OR
               ((is_range OR is_first) AND chip VERSION_GREATER_EQUAL first AND
                (last STREQUAL "" OR chip VERSION_LESS_EQUAL last)))
            if(major IN_LIST majors)
                continue()
            endif()
            list(APPEND majors "${major}")
            if(is_shared AND chip STREQUAL "90a")
                set(chip 90)
            endif()
            list(APPEND chosen -gencode=arch=compute_${chip},code=sm_${chip})
            list(APPEND found sm_${chip})
        endif()
    endforeach()
    set(${options} "${chosen}" PARENT_SCOPE)
    set(${names} "${found}" PARENT_SCOPE)
endfunction()

# tg_compile_device_image(image source option...): `source` becomes the image for the architectures
# of the options, NAME.fatbin, with the compiler's report beside it as NAME.txt.
function(tg_compile_device_image image source)
    get_filename_component(name "${image}" NAME_WE)
    get_filename_component(folder "${image}" DIRECTORY)
    file(RELATIVE_PATH path "${PROJECT_SOURCE_DIR}/src" "${source}")
    add_custom_command(OUTPUT "${image}"
        BYPRODUCTS "${folder}/${name}.txt"
        COMMAND "${CMAKE_COMMAND}" "-DREPORT=${folder}/${name}.txt"
                -P "${PROJECT_SOURCE_DIR}/cmake/CompileImage.cmake" --
                "${TG_NVCC}" -fatbin -std=c++17 -O3 --Werror all-warnings -Xptxas -v
                -I "${PROJECT_SOURCE_DIR}/src" -I "${PROJECT_SOURCE_DIR}/include"
                ${ARGN} -MD -MF "${image}.d" -o "${image}" "${source}"
        DEPENDS "${source}"
        DEPFILE "${image}.d"
        COMMENT "Compiling device code ${path}"
        VERBATIM)
endfunction()

# tg_add_device_images(target image_source entry...): an entry is a source under the current folder,
# the range of architectures that it is compiled for, "kernels/dmma/dmma.cu:80-", without one "75-",
# and the image with whose machine code its own is packed, if that is much the same. All PTX of an
# architecture is one pack, because a driver compiles it for longer than a pack takes to unpack.
# image_source, a source of `target`, embeds the packs and reads from images.def which code each
# image has and where, and for which instruction sets of isa.def the build has code. Packs are a
# target of their own, so that images compile at the same time as host objects.
function(tg_add_device_images target image_source)
    set(folder "${CMAKE_CURRENT_BINARY_DIR}/images")
    file(MAKE_DIRECTORY "${folder}")
    tg_choose_architectures(75-a unused all_names)
    string(JOIN " " names ${all_names})
    if(names STREQUAL "")
        set(names "none")
    endif()
    set(table "#ifdef TGI_IMAGE\n")
    set(packs "")
    set(places "")
    foreach(entry IN LISTS ARGN)
        string(REGEX MATCH "^([^:]+):?([^:]*):?(.*)$" unused "${entry}")
        set(source "${CMAKE_CURRENT_SOURCE_DIR}/${CMAKE_MATCH_1}")
        set(path "${CMAKE_MATCH_1}")
        set(range "${CMAKE_MATCH_2}")
        set(pack "${CMAKE_MATCH_3}")
        if(range STREQUAL "")
            set(range 75-)
        endif()
        get_filename_component(name "${source}" NAME_WE)
        if(pack STREQUAL "")
            set(pack "${name}")
        endif()
        set(image "${folder}/${name}.fatbin")
        tg_choose_architectures("${range}" options codes)
        if(NOT options STREQUAL "")
            tg_compile_device_image("${image}" "${source}" ${options} --compress-mode=none)
        endif()
        foreach(code IN LISTS codes)
            string(REGEX REPLACE "^compute_.*" "ptx" packed "${code}")
            if(NOT packed STREQUAL "ptx")
                set(packed "${pack}")
            endif()
            list(LENGTH images_${packed}_${code} place)
            list(APPEND images_${packed}_${code} "${image}")
            list(APPEND packs "${packed} ${code}")
            string(APPEND places "TGI_IMAGE_PLACE(${name}, ${code}, ${packed}, ${place})\n")
        endforeach()
        string(JOIN " " codes ${codes})
        string(APPEND table "TGI_IMAGE(${name}, \"${codes}\")\n")
    endforeach()
    string(APPEND table "#endif\n#ifdef TGI_IMAGE_PLACE\n${places}#endif\n#ifdef TGI_PACK\n")
    list(REMOVE_DUPLICATES packs)
    set(files "")
    foreach(entry IN LISTS packs)
        string(REPLACE " " ";" entry "${entry}")
        list(GET entry 0 pack)
        list(GET entry 1 code)
        set(file "${folder}/${pack}.${code}")
        tg_add_pack("${file}" ${code} ${images_${pack}_${code}})
        list(APPEND files "${file}.pack")
        string(APPEND table "TGI_PACK(${pack}, ${code}, \"${file}.pack\")\n")
    endforeach()
    string(APPEND table "#endif\n#ifdef TGI_IMAGE_CODE\n")
    file(STRINGS "${PROJECT_SOURCE_DIR}/src/core/isa.def" isas REGEX "^TGI_ISA\\(cuda,")
    foreach(chip IN LISTS TG_CUDA_ARCHITECTURES)
        if(isas MATCHES "cuda, sm${chip},")
            string(APPEND table "TGI_IMAGE_CODE(sm${chip})\n")
        endif()
    endforeach()
    string(APPEND table "#endif\n#ifndef TGI_IMAGE_ARCHITECTURES\n"
                        "#define TGI_IMAGE_ARCHITECTURES \"${names}\"\n#endif\n")
    file(CONFIGURE OUTPUT "${folder}/images.def" CONTENT "${table}" @ONLY)
    target_include_directories(${target} PRIVATE "${folder}")
    add_custom_target(${target}_images DEPENDS ${files})
    add_dependencies(${target} ${target}_images)
    set_source_files_properties(${image_source} PROPERTIES
        OBJECT_DEPENDS "${files};${folder}/images.def")
endfunction()
