# Warnings end the build only where CMAKE_COMPILE_WARNING_AS_ERROR is set, as the presets of the
# sanitizers do: a compiler with warnings of its own still builds the project. TG_WERROR says the
# same to the commands that CMake does not compose.
if(CMAKE_COMPILE_WARNING_AS_ERROR)
    set(TG_WERROR -Werror)
endif()

# tg_set_target_rules(target): what every C target of the project is compiled with. Contraction is
# off so that a * b + c rounds the same in every kernel that does not ask for an FMA by name.
function(tg_set_target_rules target)
    target_compile_definitions(${target} PRIVATE _GNU_SOURCE)
    target_compile_options(${target} PRIVATE -Wall -Wextra -ffp-contract=off)
endfunction()
