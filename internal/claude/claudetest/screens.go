package claudetest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
)

// The screens on which the CLI waits for a key, as 2.1.332 and 2.1.207 draw them (30
// rows, 100 columns). The ones for a login and for the usage limit could not be called
// up without an account; they are put together of the texts in the programs.
const (
	Trust332 = rule + `
 Accessing workspace:

 /tmp/cwd

 Quick safety check: Is this a project you created or one you trust? (Like your own code, a
 well-known open source project, or work from your team). If not, take a moment to review what's in
 this folder first.

 Claude Code'll be able to read, edit, and execute files here.

 Security guide

 ❯ No, exit
   Yes, I trust this folder

 Enter to confirm · Esc to cancel`

	Trust207 = rule + `
 Accessing workspace:

 /tmp/cwd

 Quick safety check: Is this a project you created or one you trust? (Like your own code, a
 well-known open source project, or work from your team). If not, take a moment to review what's in
 this folder first.

 Claude Code'll be able to read, edit, and execute files here.

 Security guide

 ❯ 1. Yes, I trust this folder
   2. No, exit

 Enter to confirm · Esc to cancel`

	Theme332 = `.......█ █   █ █..........................................

 Let's get started.

 Choose the text style that looks best with your terminal
 To change this later, run /theme

 ❯ ✔ Auto (match terminal)
     Dark mode
     Light mode
     Dark mode (colorblind-friendly)
     Light mode (colorblind-friendly)
     Dark mode (ANSI colors only)
     Light mode (ANSI colors only)

 ╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌
  1  function greet() {
  2 -  console.log("Hello, World!");
  2 +  console.log("Hello, Claude!");
  3  }
 ╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌
  Syntax theme: Monokai Extended (ctrl+t to disable)`

	Theme207 = `.......█ █   █ █..........................................

 Let's get started.

 Choose the text style that looks best with your terminal
 To change this later, run /theme

   1. Auto (match terminal)
 ❯ 2. Dark mode ✔
   3. Light mode
   4. Dark mode (colorblind-friendly)
   5. Light mode (colorblind-friendly)
   6. Dark mode (ANSI colors only)
   7. Light mode (ANSI colors only)

  Syntax theme: Monokai Extended (ctrl+t to disable)`

	Key332 = rule + `
  Detected a custom API key in your environment

  ANTHROPIC_API_KEY: sk-ant-...kkkkkkkkkkkkkkkkkkkk

  Do you want to use this API key?

    Yes
  ❯ No (recommended)

  Enter to confirm · Esc to cancel`

	Key207 = rule + `
  Detected a custom API key in your environment

  ANTHROPIC_API_KEY: sk-ant-...kkkkkkkkkkkkkkkkkkkk

  Do you want to use this API key?

    1. Yes
  ❯ 2. No (recommended)

  Enter to confirm · Esc to cancel`

	Login = `
 Claude Code can be used with your Claude subscription or billed based on API usage through your
 Console account.

 Select login method:

 ❯ 1. Claude account with subscription · Pro, Max, Team, or Enterprise

   2. Anthropic Console account · API usage billing

   3. 3rd-party platform · Amazon Bedrock, Microsoft Foundry, or Vertex AI`

	LimitStop = rule + `
 What do you want to do?

 ❯ 1. Stop and wait for limit to reset
   2. Upgrade your plan

 Enter to confirm · Esc to cancel`

	LimitUpgrade = rule + `
 What do you want to do?

 ❯ Upgrade your plan
   Switch to usage credits
   Stop and wait for limit to reset

 Enter to confirm · Esc to cancel`

	Offline = ` Unable to connect to Anthropic services

 Failed to connect to api.anthropic.com: ENOTFOUND`
)

const rule = "────────────────────────────────────────────────────────────────────────────────────────────────────"

// MainScreen is the screen of a session that is at work or waits for a prompt: some of
// the conversation, and below it the input box and a footer.
func MainScreen(conversation string) string {
	return conversation + "\n\n" + rule + "\n❯ \n" + rule + "\n  ⏸ manual mode on · ? for shortcuts · ← for agents"
}

// mainScreen shows a prompt as the CLI does, as much of it as there is room for.
func mainScreen(prompt string) string {
	const room = 20
	lines := strings.Split(prompt, "\n")
	return MainScreen("❯ " + strings.Join(lines[max(0, len(lines)-room):], "\n  "))
}

// onboarding is the dialog with which the CLI begins on its configuration as it is, or
// empty. They come when the system text has been read, and before any hook.
func onboarding(cwd string) string {
	var config struct {
		HasCompletedOnboarding bool
		Projects               map[string]struct{ HasTrustDialogAccepted bool }
		CustomAPIKeyResponses  struct{ Approved []string }
	}
	if data, err := os.ReadFile(filepath.Join(configFolder(), ".claude.json")); err == nil {
		_ = json.Unmarshal(data, &config)
	}
	trusted := os.Getenv("CLAUDE_CODE_SANDBOXED") == "1"
	for dir := cwd; !trusted && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		trusted = config.Projects[dir].HasTrustDialogAccepted
	}
	key, approved := os.Getenv("ANTHROPIC_API_KEY"), false
	for _, tail := range config.CustomAPIKeyResponses.Approved {
		approved = approved || strings.HasSuffix(key, tail) && tail != ""
	}
	switch {
	case !config.HasCompletedOnboarding:
		return Theme332
	case !trusted:
		return Trust332
	case key != "" && !approved:
		return Key332
	}
	return ""
}

// configFolder is where .claude.json is.
func configFolder() string {
	if dir := os.Getenv("CLAUDE_CONFIG_DIR"); dir != "" {
		return dir
	}
	return os.Getenv("HOME")
}
