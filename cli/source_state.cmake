# Writes OUTPUT, a source file with what `git describe` says of SOURCE_DIR ("" outside a
# repository), and leaves it untouched where that has not changed.
cmake_minimum_required(VERSION 3.25)
set(state "")
find_program(GIT git)
if(GIT AND EXISTS "${SOURCE_DIR}/.git")
    execute_process(COMMAND ${GIT} -C "${SOURCE_DIR}" describe --always --dirty --abbrev=12
                    OUTPUT_VARIABLE state OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
file(CONFIGURE OUTPUT "${OUTPUT}" @ONLY CONTENT
     "#include \"host_machine.h\"\n\nconst char cli_source_state[] = \"@state@\";\n")
