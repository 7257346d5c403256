package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"ocp/internal/messagesapi"
)

// Every model that is listed can be asked for, and the upstream is asked for that one, or
// for the one listed that its alias stands for.
func TestListedModels(t *testing.T) {
	onEachCLI(t, func(t *testing.T, c cli) {
		p := startProxy(t, c, proxyOptions{script: messagesapi.ByRequest(func(r messagesapi.Request) messagesapi.Answer {
			return messagesapi.TextAnswer(r.Model)
		})})
		resp, err := http.Get(p.url + "/v1/models")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		var list struct{ Data []struct{ ID string } }
		if err != nil || json.Unmarshal(body, &list) != nil || len(list.Data) < 8 || len(list.Data)%2 != 0 {
			t.Fatalf("got %s, %v", body, err)
		}
		aliases := len(list.Data) / 2 // and behind them what they stand for, in their order
		inParallel(len(list.Data), 2, func(i int) {
			id, want := list.Data[i].ID, list.Data[aliases+i%aliases].ID
			reply := p.postChat(t.Context(), chatBody{Model: id, Messages: []sentMessage{{"user", "Hello."}}})
			if asked := reply.text(); asked != want && !strings.HasPrefix(asked, want+"-20") { // a date may follow
				t.Errorf("%s: the upstream was asked for %q, not %q; status %d, %s", id, asked, want, reply.status, reply.body)
			}
		})
	})
}
