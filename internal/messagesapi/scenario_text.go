package messagesapi

import (
	"fmt"
	"strings"
)

const helloText = "Hello! How can I help you today?"

const demoText = `# How this answer reaches you 🌊

You are reading it **while it is being written**: every line below left the
model about 60 ms after the one above it.

## The way it takes

1. The model streams the answer to the *Claude Code* CLI.
2. The CLI reports each finished piece through its own hook.
3. The pieces are put in order and sent on, byte for byte.
4. At the end all of it is compared with the transcript.

| stage      | what it adds           | exact |
|------------|------------------------|:-----:|
| hook       | a few milliseconds     |  ✅   |
| ordering   | nothing you can notice |  ✅   |
| transcript | the last word          |  ✅   |

` + "```go" + `
for delta := range turn.Deltas() {
	fmt.Print(delta.Text) // "naïve café" stays as it is
}
` + "```" + `

Even a family of four survives the journey: 👨‍👩‍👧‍👦

That is all. Have fun! 🎉
`

const controlText = "nul:\x00 bel:\a bs:\b tab:\t vt:\v ff:\f esc:\x1b[31m del:\x7f\n" +
	"c1:\u0080\u009b nel:\u0085 nbsp:\u00a0 shy:\u00ad\n" +
	"zero-width:\u200b\u200c\u200d\u2060 bom:\ufeff\n" +
	"line:\u2028 paragraph:\u2029 bidi:\u202e\u202c tag:\U000e0041\U000e007f end\n"

const emojiText = "family 👨‍👩‍👧‍👦 flag 🏳️‍🌈 and 🇩🇪, skin 👍🏽, keycap 1️⃣, heart ❤️‍🔥\n" +
	"combining: e\u0301 Z\u0351\u036b\u0343 ; Hangul: \u1112\u1161\u11ab\n"

const tableText = "Prices today:\n\n" +
	"| fruit  | price | stock |\n" +
	"|:-------|------:|:-----:|\n" +
	"| apple  |  1.20 | yes  |\n" +
	"| pear   |  0.95 | `no` |\n" +
	"| a \\| b | **2** |      |\n\n" +
	"That is all.\n"

const loginText = "Please run /login · API Error: 401 " +
	`{"type":"error","error":{"type":"authentication_error","message":"Invalid authentication credentials"}}` +
	"\n\nThat is what the program prints when its token has expired."

const thinkingSignature = "c2NyaXB0ZWQgc2lnbmF0dXJlLCBub3QgdmFsaWQgYW55d2hlcmU="

// longLine is 4,096 bytes without a line feed.
func longLine() string {
	return strings.Repeat("all work and no play makes a long line; ", 103)[:4096]
}

// bigText is 4,800 lines of 42 bytes.
func bigText() string {
	var b strings.Builder
	for i := 1; i <= 4800; i++ {
		fmt.Fprintf(&b, "line %04d of the answer: forty-two bytes.\n", i)
	}
	return b.String()
}

// thinkingText is 2 KB of thinking.
func thinkingText() string {
	return strings.Repeat("This must never reach a client of the proxy.\n", 46)
}
