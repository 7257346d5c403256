package e2e

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ocp/internal/messagesapi"
)

func wantWhole(t *testing.T, got step) {
	t.Helper()
	if got.Error != nil {
		t.Fatalf("%+v", *got.Error)
	}
	if want := stepText(stepPrompt(t)); got.Text != want {
		t.Error(difference(got.Text, want))
	}
}

func (c stepClient) wantAnswer(t *testing.T, _ *proxy, got step) {
	t.Helper()
	wantWhole(t, got)
	if got.Finish != c.finish {
		t.Errorf("it ended with %q, want %q", got.Finish, c.finish)
	}
	if want := (stepUsage{Input: 21, Output: 8}); got.Usage == nil || *got.Usage != want {
		t.Errorf("the usage is %+v, want %+v", got.Usage, want)
	}
}

func (c stepClient) wantStreamed(t *testing.T, p *proxy, got step) {
	c.wantAnswer(t, p, got)
	if got.Pieces < 2 {
		t.Errorf("the answer came in %d pieces", got.Pieces)
	}
}

func (c stepClient) wantConversation(t *testing.T, p *proxy, got step) {
	c.wantAnswer(t, p, got)
	request := stepRequest(t, p)
	compareMessages(t, request.Messages, []seenMessage{seen("user", "one"), seen("assistant", "two"), seen("user", stepPrompt(t))})
	compareSystem(t, request.System, stepSystem)
}

// stepRequest is the step's one request.
func stepRequest(t *testing.T, p *proxy) messagesapi.Request {
	t.Helper()
	asked := askedFor(t, p)
	if len(asked) != 1 {
		t.Errorf("the model was asked %d times", len(asked))
	}
	request, err := asked[0].Decode()
	if err != nil {
		t.Fatal(err)
	}
	return request
}

func (c stepClient) wantImage(t *testing.T, p *proxy, got step) {
	c.wantAnswer(t, p, got)
	var images []string
	for _, block := range stepRequest(t, p).Messages[0].Content {
		if block.Type == "image" {
			images = append(images, string(block.Source))
		}
	}
	if want := []string{`{"type":"base64","media_type":"image/png","data":"` + tinyPNG + `"}`}; !slices.Equal(images, want) {
		t.Errorf("the model got the images %q", images)
	}
}

func (c stepClient) wantTools(t *testing.T, p *proxy, got step) {
	c.wantAnswer(t, p, got)
	var lines []string
	for _, m := range stepRequest(t, p).Messages {
		for _, block := range m.Content {
			if !strings.HasPrefix(block.Text, "<system-reminder>") {
				lines = append(lines, m.Role+" "+plainBlock(t, block))
			}
		}
	}
	want := []string{
		`user {"text":"` + stepPrompt(t) + `","type":"text"}`,
		`assistant {"id":"call_1","input":{"city":"Paris"},"name":"weather","type":"tool_use"}`,
		`user {"content":[{"text":"rain","type":"text"}],"tool_use_id":"call_1","type":"tool_result"}`,
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Error(diff)
	}
}

// wantLoop wants that the client has called its tool and has brought the result.
func (c stepClient) wantLoop(t *testing.T, p *proxy, got step) {
	wantWhole(t, got)
	asked := askedFor(t, p)
	if len(asked) != 2 {
		t.Fatalf("the model was asked %d times", len(asked))
	}
	request, err := asked[1].Decode()
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, m := range request.Messages[1:] {
		for _, block := range m.Content {
			lines = append(lines, m.Role+" "+plainBlock(t, block))
		}
	}
	want := []string{
		`assistant {"text":"One moment.","type":"text"}`,
		`assistant {"id":"toolu_loop","input":{"city":"Paris"},"name":"mcp__t__weather","type":"tool_use"}`,
		`user {"content":[{"text":"rain in Paris","type":"text"}],"tool_use_id":"toolu_loop","type":"tool_result"}`,
	}
	if diff := cmp.Diff(want, lines); diff != "" || len(request.Tools) != 1 {
		t.Errorf("%d tools: %s", len(request.Tools), diff)
	}
}

// wantRetried wants that the client came back by itself.
func (c stepClient) wantRetried(t *testing.T, p *proxy, got step) {
	c.wantAnswer(t, p, got)
	asked := askedFor(t, p)
	if len(asked) != 2 {
		t.Fatalf("the model was asked %d times", len(asked))
	}
}

// wantAborted wants that the turn ended with the client: the session's own connection to
// the model is gone.
func (c stepClient) wantAborted(t *testing.T, p *proxy, got step) {
	if got.Text == "" || !strings.HasPrefix(stepText(stepPrompt(t)), got.Text) {
		t.Errorf("before it was aborted, the client got %q", got.Text)
	}
	if is := errorClass(got); is != c.aborted {
		t.Errorf("the client raised %q, want %q: %+v", is, c.aborted, got.Error)
	}
	outcome, err := askedFor(t, p)[0].Wait(withPatience(t))
	if err != nil || outcome != messagesapi.Disconnected {
		t.Errorf("the model's answer ended as %s, %v", outcome, err)
	}
}

func errorClass(got step) string {
	if got.Error == nil {
		return ""
	}
	return got.Error.Is
}

func wantStepError(class string, status int, says string) func(*testing.T, *proxy, step) {
	return func(t *testing.T, _ *proxy, got step) {
		if errorClass(got) != class || got.Error.Status != status || !strings.Contains(got.Error.Message, says) || got.Text != "" {
			t.Errorf("got %q and %+v, want %s with %d", got.Text, got.Error, class, status)
		}
	}
}

// wantBroken wants the beginning of the answer and then an error, never an end.
func wantBroken(class string) func(*testing.T, *proxy, step) {
	return func(t *testing.T, _ *proxy, got step) {
		if got.Text == "" || !strings.HasPrefix(stepText(stepPrompt(t)), got.Text) {
			t.Errorf("the client got %q", got.Text)
		}
		if errorClass(got) != class {
			t.Errorf("the client raised %+v, want %s", got.Error, class)
		}
	}
}

func checkHelper(t *testing.T, _ *proxy, got step) {
	wantWhole(t, got)
	if got.Pieces < 1 || got.Finish != "stop" && got.Finish != "end_turn" {
		t.Errorf("%d pieces, then %q", got.Pieces, got.Finish)
	}
}

func checkResponse(t *testing.T, _ *proxy, got step) {
	wantWhole(t, got)
	if got.Finish != "completed" {
		t.Errorf("it ended with %q", got.Finish)
	}
	if strings.HasSuffix(t.Name(), "responseStreamed") && got.Pieces < 2 {
		t.Errorf("the answer came in %d pieces", got.Pieces)
	}
}

func checkStructured(t *testing.T, _ *proxy, got step) {
	if got.Text != stepPlace || got.Error != nil {
		t.Errorf("got %q, %+v", got.Text, got.Error)
	}
}

func checkCount(t *testing.T, _ *proxy, got step) {
	if got.Error != nil || got.Usage == nil || got.Usage.Input < 5 || got.Usage.Input > 50 {
		t.Errorf("counted %+v, %+v", got.Usage, got.Error)
	}
}

func checkModels(t *testing.T, _ *proxy, got step) {
	if got.Error != nil || !slices.Contains(strings.Split(got.Text, "\n"), "sonnet") {
		t.Errorf("the models are %q, %+v", got.Text, got.Error)
	}
}

// wantSlotsFree wants n turns to run at the same time: no aborted turn holds a slot.
func wantSlotsFree(t *testing.T, p *proxy, n int) {
	t.Helper()
	gate := messagesapi.NewGate()
	p.model.SetScript(messagesapi.Always(messagesapi.Answer{Parts: []messagesapi.Part{messagesapi.Text("ok")}, Gate: gate}))
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			if _, err := p.complete(withPatience(t), user("hi")); err != nil {
				t.Error(err)
			}
		})
	}
	if err := gate.Arrived(withPatience(t), n); err != nil {
		t.Errorf("%d turns do not run at the same time: %v", n, err)
	}
	gate.Open()
	all.Wait()
}
