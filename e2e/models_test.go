package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"ocp/internal/messagesapi"
)

// Every model that is listed can be asked for, and the upstream is asked for that one: an
// alias leads to a model of its family.
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
		if err != nil || json.Unmarshal(body, &list) != nil || len(list.Data) < 6 {
			t.Fatalf("got %s, %v", body, err)
		}
		inParallel(len(list.Data), 2, func(i int) {
			id := list.Data[i].ID
			reply := p.postChat(t.Context(), chatBody{Model: id, Messages: []sentMessage{{"user", "Hello."}}})
			asked := reply.text()
			if full := strings.HasPrefix(id, "claude-"); full && !strings.HasPrefix(asked, id) || !full && !strings.HasPrefix(asked, "claude-"+id) {
				t.Errorf("%s: the upstream was asked for %q; status %d, %s", id, asked, reply.status, reply.body)
			}
		})
	})
}
