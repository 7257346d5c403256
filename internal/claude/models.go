package claude

import "slices"

// aliases are the names that the CLI takes for the newest model of each family it knows.
// It knows others, such as default, best and opusplan, that name no family.
var aliases = []string{"opus", "sonnet", "haiku", "fable"}

// newest are the models that the aliases stood for, in their order, as measured on each of
// TestedVersions. 2.1.207 asks for haiku with a date behind its name.
var newest = map[string][]string{
	"2.1.207": {"claude-opus-4-8", "claude-sonnet-5", "claude-haiku-4-5", "claude-fable-5"},
	"2.1.332": {"claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-5-5", "claude-fable-5-2"},
}

// Models are the names of models that a release of the CLI is offered with: its aliases,
// and the models they stand for if that was measured on it. It takes others too. Whether
// an account may use one only the upstream can tell.
func Models(version string) []string { return slices.Concat(aliases, newest[version]) }
