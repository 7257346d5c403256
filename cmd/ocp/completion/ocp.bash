# Completion of ocp for bash: source this, or put it where bash-completion looks
# (~/.local/share/bash-completion/completions/ocp).
_ocp() {
	local value
	COMPREPLY=()
	while IFS=$'\t' read -r value _; do
		if [ "$value" = :files ]; then
			compopt -o default
		else
			COMPREPLY+=("$value")
		fi
	done < <("${COMP_WORDS[0]}" complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _ocp ocp
