package claude

import "strings"

// dialogs are the screens that keep a session from starting (facts, section 15), by
// words that each of them shows. They only explain a failed start: nothing is ever
// answered or decided by them.
var dialogs = []struct{ words, meaning string }{
	{"trust", "it asks whether to trust its working directory"},
	{"Detected a custom API key", "it asks whether to use the API key"},
	{"Select login method", "it asks for a login"},
	{"Choose the text style", "it asks for a theme: it was never set up"},
	{"Unable to connect", "it cannot connect to the upstream"},
	{"No conversation found", "it did not find the conversation it was to resume"},
}

// explain names the dialog on a screen, if it is a known one. The screen's own text is
// not returned, since it can show the conversation.
func explain(screen string) string {
	for _, d := range dialogs {
		if strings.Contains(screen, d.words) {
			return d.meaning
		}
	}
	return ""
}
