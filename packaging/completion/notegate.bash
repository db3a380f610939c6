# SPDX-License-Identifier: MIT
# bash completion for notegate, printed by `notegate --help-completion bash`.
# shellcheck shell=bash disable=SC2207

__notegate_tools() {
    "${COMP_WORDS[0]}" tools --format openai 2>/dev/null | grep -o '"function":{"name":"[^"]*"' |
        cut -d '"' -f 6
}

_notegate() {
    local word=${COMP_WORDS[COMP_CWORD]} last=${COMP_WORDS[COMP_CWORD - 1]} command= options= words= files= first=0 i
    local commands="serve mcp call tools whoami log show diff blame undo key check verify audit backup restore test-backend test-plugin"
    COMPREPLY=()
    for ((i = 1; i < COMP_CWORD; i++)); do
        if [[ " $commands " == *" ${COMP_WORDS[i]} "* ]]; then
            command=${COMP_WORDS[i]}
            first=$((COMP_CWORD - i))
            break
        fi
    done
    case $last in
    --checkpoint|--config|-c)
        COMPREPLY=($(compgen -f -- "$word"))
        return
        ;;
    --data-dir|-d|--root|-r)
        COMPREPLY=($(compgen -d -- "$word"))
        return
        ;;
    --mode)
        COMPREPLY=($(compgen -W "ask edit agent" -- "$word"))
        return
        ;;
    --role)
        COMPREPLY=($(compgen -W "reader writer admin" -- "$word"))
        return
        ;;
    --color)
        COMPREPLY=($(compgen -W "auto always never" -- "$word"))
        return
        ;;
    --format)
        COMPREPLY=($(compgen -W "mcp openai openai-responses anthropic gemini" -- "$word"))
        return
        ;;
    --agent|--space|--run|--tool|--no-tool|--rate|--expires|--note|--action|--collection|--id|--path|--outcome|--since|--until|--number|-n|--at|--lines|-L|--change|--continue|--as|--only|--user|--set|-s|--listen|-l)
        return
        ;;
    esac
    case $command in
    serve)
        options="--user --config --set --listen --data-dir --root --help --version"
        words=""
        ;;
    mcp)
        options="--agent --space --mode --run --config --set --listen --data-dir --root --help --version"
        words=""
        ;;
    call)
        options="--agent --space --mode --run --json --config --set --listen --data-dir --root --help --version"
        words=""
        [[ $first -eq 1 && $word != -* ]] && words=$(__notegate_tools)
        ;;
    tools)
        options="--json --format --config --set --listen --data-dir --root --help --version"
        words=""
        [[ $first -eq 1 && $word != -* ]] && words=$(__notegate_tools)
        ;;
    whoami)
        options="--agent --space --mode --config --set --listen --data-dir --root --help --version"
        words=""
        ;;
    log)
        options="--agent --run --tool --action --collection --space --id --since --until --number --runs --oneline --stat --patch --as --color --no-pager --json --config --set --listen --data-dir --root --help --version"
        words=""
        ;;
    show)
        options="--at --space --as --color --no-pager --json --config --set --listen --data-dir --root --help --version"
        words=""
        ;;
    diff)
        options="--agent --run --tool --action --collection --id --since --until --stat --at --space --as --color --no-pager --json --config --set --listen --data-dir --root --help --version"
        words=""
        ;;
    blame)
        options="--at --space --lines --as --color --no-pager --json --config --set --listen --data-dir --root --help --version"
        words=""
        ;;
    undo)
        options="--agent --run --tool --action --collection --id --since --until --space --change --continue --list --dry-run --yes --as --color --no-pager --json --config --set --listen --data-dir --root --help --version"
        words=""
        ;;
    key)
        options="--space --role --mode --run --no-run --restore --no-restore --tool --no-tool --rate --expires --note --all --force --json --config --set --listen --data-dir --root --help --version"
        words="add set pause resume list revoke"
        ;;
    check)
        options="--json --help-config --config --set --listen --data-dir --root --help --version"
        words=""
        ;;
    verify)
        options="--json --config --set --listen --data-dir --root --help --version"
        words=""
        ;;
    audit)
        options="--agent --space --run --tool --action --collection --id --path --outcome --since --until --number --ocsf --checkpoint --json --config --set --listen --data-dir --root --help --version"
        words="list export verify redact"
        ;;
    backup)
        options="--json --files --force --config --set --listen --data-dir --root --help --version"
        words=""
        files=1
        ;;
    restore)
        options="--json --only --config --set --listen --data-dir --root --help --version"
        words=""
        files=1
        ;;
    test-backend)
        options="--help --version"
        words=""
        files=1
        ;;
    test-plugin)
        options="--set --help --version"
        words=""
        files=1
        ;;
    *)
        options="--help --version"
        words=$commands
        ;;
    esac
    if [[ $word == -* ]]; then
        COMPREPLY=($(compgen -W "$options" -- "$word"))
    elif [[ -n $files ]]; then
        COMPREPLY=($(compgen -f -- "$word"))
    elif [[ -z $command || $first -eq 1 ]]; then
        COMPREPLY=($(compgen -W "$words" -- "$word"))
    fi
}

complete -o filenames -F _notegate notegate
