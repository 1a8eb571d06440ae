# bash completion of tilegemm
_tilegemm_complete()
{
    local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
    local command=${COMP_WORDS[1]} options words
    # bash makes a word of its own of "=", so that --type=fp must be told from --type fp
    if [[ $current == "=" ]]; then
        current=
    elif [[ $before == "=" && COMP_CWORD -gt 1 ]]; then
        before=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    COMPREPLY=()

    if ((COMP_CWORD == 1)); then
        mapfile -t COMPREPLY < <(compgen -W \
            "multiply bench explain simulate profile report kernels info --help --usage --version" \
            -- "$current")
        return
    fi

    case $before in
    --type | --output-type) words="fp32 fp64 bf16 fp16 fp8_e4m3 fp8_e5m2" ;;
    --precision) words="default ieee_fp32 ieee_fp64 tf32 bf16x3 bf16x6 bf16x9 fp16x3" ;;
    --isa) words="generic avx2 avx512 avx512_bf16 sm75 sm80 sm89 sm90a" ;;
    --device) words="cpu cuda cuda:0 cuda:1 sim" ;;
    --peer | -p) words="all none openblas blis onednn onednn_sgemm mkl cublas cublas_lt
                        cublas_best" ;;
    --gpu)
        mapfile -t COMPREPLY < <(compgen -W "t4 a40 l4 a100 rtx3090 rtx4090 h100 h100_pcie h200
            b200 rtx5090" -- "$current"
            compgen -f -- "$current")
        return
        ;;
    --tile) words="auto 2 4 8 16 32 64 128" ;;
    --kernel | -k)
        words="best ladder all $(tilegemm kernels 2>/dev/null | awk 'NR > 1 { print $1 }')"
        ;;
    --suite | -S)
        words="square cubes layouts odd skinny llm cliff seeds"
        mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current"
            compgen -f -- "$current")
        return
        ;;
    --json | -j)
        if [[ $command == bench ]]; then
            mapfile -t COMPREPLY < <(compgen -f -- "$current")
            return
        fi
        ;;
    --output | -o | --c | --bench | --profile)
        mapfile -t COMPREPLY < <(compgen -f -- "$current")
        return
        ;;
    --shape | -s | --threads | -t | --alpha | --beta | --rounds | --min-time | --max-time | \
        --within | --sustained)
        return
        ;;
    esac
    if [[ -n ${words-} ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
        return
    fi

    case $command in
    multiply)
        options="--output --alpha --beta --c --transpose-a --transpose-b --type --output-type
            --precision --threads --device --check --json --quiet"
        ;;
    bench)
        options="--shape --suite --type --precision --kernel --peer --threads --device --isa --json
            --rounds --min-time --max-time --within --hot --cold --graph --batch-invariant
            --sustained"
        ;;
    simulate) options="--kernel --tile --gpu --trace --lines --requests --without-barrier --json" ;;
    profile) options="--kernel --device --gpu --json --launch" ;;
    explain) options="--kernel --tile --gpu --device --json" ;;
    report) options="--gpu --tile --bench --profile --output" ;;
    kernels) options="--json --device --isa" ;;
    info) options="--json" ;;
    *) return ;;
    esac
    if [[ $current == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$options --help --usage --version" -- "$current")
    elif [[ $command == multiply ]]; then
        mapfile -t COMPREPLY < <(compgen -f -- "$current")
    fi
}
complete -o filenames -F _tilegemm_complete tilegemm
