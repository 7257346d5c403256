package messagesapi

import "time"

// refusalScenarios are HTTP errors, worded as the API words them.
func refusalScenarios() []Scenario {
	return []Scenario{
		broke("overloaded", "529", ErrorAnswer(statusOverloaded, "Overloaded"), ""),
		broke("rate-limited", "429 with Retry-After: 2", ErrorAnswer(429,
			"This request would exceed your organization's rate limit", "Retry-After", "2"), ""),
		broke("server-error", "500", ErrorAnswer(500, "Internal server error"), ""),
		broke("unauthorized", "401", ErrorAnswer(401, "invalid x-api-key"), ""),
		broke("forbidden", "403", ErrorAnswer(403, "Your account does not have access to this resource"), ""),
		broke("not-found", "404: no such model", ErrorAnswer(404, "model: not-a-model"), ""),
		broke("bad-request", "400", ErrorAnswer(400, "messages.0: something is wrong with this request"), ""),
		broke("prompt-too-long", "400: the prompt is too long",
			ErrorAnswer(400, "prompt is too long: 250000 tokens > 200000 maximum"), ""),
		broke("too-large", "413", ErrorAnswer(413, "Request exceeds the maximum size"), ""),
	}
}

// brokenScenarios are streams that break.
func brokenScenarios() []Scenario {
	return []Scenario{
		breaking("cut-before", "connection closed before message_start", CutFIN(BeforeStart()), ""),
		breaking("cut-start", "connection closed after message_start", CutFIN(AfterStart()), ""),
		breaking("cut-inside", "connection closed inside a text block", CutFIN(InBlock(0, 2)), brokenStart),
		breaking("reset-inside", "connection reset inside a text block", CutRST(InBlock(0, 2)), brokenStart),
		breaking("cut-after", "connection closed after the text block, before message_delta", CutFIN(AfterBlock(0)), brokenText),
		breaking("cut-late", "connection closed after message_delta, before message_stop", CutFIN(BeforeStop()), brokenText),
		breaking("end-inside", "body ended properly inside a text block", EndEarly(InBlock(0, 2)), brokenStart),
		breaking("malformed", "an event that is not JSON inside a text block", Malformed(InBlock(0, 2)), brokenStart),
		breaking("error-event", "an SSE error event inside a text block", ErrorEvent(InBlock(0, 2), Overloaded()), brokenStart),
		breaking("error-event-start", "an SSE error event before any block", ErrorEvent(AfterStart(), Overloaded()), ""),
		breaking("hang", "silence inside a text block, for ever", Hang(InBlock(0, 2)), brokenStart),
		breaking("hang-before", "no answer at all, for ever", Hang(BeforeHeader()), ""),
	}
}

// slowScenarios take their time.
func slowScenarios() []Scenario {
	return []Scenario{
		told("slow", "first byte after 2 s, then an event every 500 ms", Answer{
			Parts:     []Part{Text("one\ntwo\nthree\nfour\nfive\n")},
			Pace:      Pace{First: 2 * time.Second, Between: 500 * time.Millisecond},
			PingEvery: 2,
		}),
	}
}

// The text of the broken streams; brokenStart is its first two lines.
const (
	brokenStart = "The first line.\nThe second line.\n"
	brokenText  = brokenStart + "The third line, which some never see.\n"
)

func breaking(name, description string, f Fault, partial string) Scenario {
	return broke(name, description, Answer{Parts: []Part{Text(brokenText)}, Fault: f}, partial)
}
