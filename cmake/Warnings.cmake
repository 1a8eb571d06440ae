# tg_set_target_rules(target): what every C target of the project is compiled with. Contraction is
# off so that a * b + c rounds the same in every kernel that does not ask for an FMA by name.
function(tg_set_target_rules target)
    target_compile_definitions(${target} PRIVATE _GNU_SOURCE)
    target_compile_options(${target} PRIVATE -Wall -Wextra -Werror -ffp-contract=off)
endfunction()
