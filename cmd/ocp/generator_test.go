package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"ocp/internal/hook"
)

// plan is what a generator is told first: Clients clients, each of which asks for one
// turn after the other until Run is over. A turn is Deltas hook calls, one Every so often.
type plan struct {
	API, Hooks string
	Clients    int
	Run        time.Duration
	Deltas     int
	Every      time.Duration
}

// launch is what a CLI is started with; the generator is told one for each session.
type launch struct{ Client, Session, Secret, Transcript string }

// report is what it has to say in the end.
type report struct {
	Turns, Deltas int
	Errors        []string
	CPU           time.Duration
	Called        *series // what a hook call takes
	Read          *series // from when a delta was due until its client has read it
}

// clientHeader tells the backend which client a request is of.
const clientHeader = "Load-Client"

// generator plays the CLIs and the clients of a load.
type generator struct {
	plan
	begun   time.Time
	clients []*loadClient
	address string // of the hook receiver
	clis    sync.WaitGroup

	called, read series

	mu            sync.Mutex
	turns, deltas int     // guarded by mu
	errs          []error // guarded by mu
}

// loadClient is one client and the CLI that answers it, by turns.
type loadClient struct {
	*generator
	name string
	http *http.Client

	mu      sync.Mutex
	session string      // that answers now; guarded by mu
	due     []time.Time // when its deltas were due; guarded by mu
}

// generate plays a load: it reads a plan and launches from in and writes a report to out.
func generate(in io.Reader, out io.Writer) error {
	orders := json.NewDecoder(in)
	g := &generator{}
	if err := orders.Decode(&g.plan); err != nil {
		return fmt.Errorf("read plan: %w", err)
	}
	hooks, err := url.Parse(g.Hooks)
	if err != nil {
		return fmt.Errorf("read plan: %w", err)
	}
	g.address, g.begun = hooks.Host, time.Now()
	used := processorTime()
	for i := range g.Clients {
		g.clients = append(g.clients, &loadClient{
			generator: g, name: strconv.Itoa(i), http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1}},
		})
	}
	started := make(chan error, 1)
	go func() { started <- g.start(orders) }()

	var clients sync.WaitGroup
	for i, c := range g.clients {
		// Spread over the length of a turn, since turns do not begin in step either.
		late := time.Duration(g.Deltas) * g.Every * time.Duration(i) / time.Duration(g.Clients)
		clients.Go(func() { c.askFrom(g.begun.Add(late)) })
	}
	clients.Wait()
	g.clis.Wait()
	r := report{Turns: g.turns, Deltas: g.deltas, CPU: processorTime() - used, Called: &g.called, Read: &g.read}
	for _, err := range g.errs[:min(len(g.errs), 10)] {
		r.Errors = append(r.Errors, err.Error())
	}
	return errors.Join(json.NewEncoder(out).Encode(&r), <-started)
}

// start plays a CLI for each launch, until there are no more.
func (g *generator) start(orders *json.Decoder) error {
	for {
		var l launch
		if err := orders.Decode(&l); err == io.EOF {
			return nil
		} else if err != nil {
			return fmt.Errorf("read launch: %w", err)
		}
		i, err := strconv.Atoi(l.Client)
		if err != nil {
			return fmt.Errorf("read launch: %w", err)
		}
		g.clis.Go(func() {
			if err := g.clients[i].play(l); err != nil {
				g.fail(fmt.Errorf("cli of client %d: %w", i, err))
			}
		})
	}
}

func (g *generator) fail(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.errs = append(g.errs, err)
}

// text is a delta's. All have the same length.
func (g *generator) text(session string, i int) string {
	return fmt.Sprintf("%s %06d A line of an answer, “Größe” 漢字.\n", session, i)
}

// play is a session's CLI in one turn.
func (c *loadClient) play(l launch) error {
	c.mu.Lock()
	c.session, c.due = l.Session, nil
	c.mu.Unlock()
	calls := caller{client: c, launch: l, free: make(chan *hookConn, inFlight)}
	defer calls.close()
	event := func(name string) hook.Event {
		return hook.Event{Name: name, SessionID: l.Session, TranscriptPath: l.Transcript, MessageID: "m"}
	}
	if err := calls.post(event(hook.SessionStart)); err != nil {
		return err
	}
	if err := appendLines(l.Transcript, map[string]any{"type": "file-history-snapshot"}); err != nil {
		return err
	}
	tick := time.NewTicker(c.Every)
	defer tick.Stop()
	var answer strings.Builder
	for i := range c.Deltas {
		due := <-tick.C
		c.mu.Lock()
		c.due = append(c.due, due)
		c.mu.Unlock()
		e := event(hook.MessageDisplay)
		e.Index, e.Final, e.Delta = i, i == c.Deltas-1, c.text(l.Session, i)
		answer.WriteString(e.Delta)
		calls.start(e)
	}
	calls.wait()
	stop := event(hook.Stop)
	stop.LastAssistantMessage = new(strings.TrimSpace(answer.String()))
	if err := calls.post(stop); err != nil {
		return err
	}
	return appendLines(l.Transcript, map[string]any{
		"type": "assistant", "entrypoint": "cli", "message": map[string]any{
			"id": "msg", "role": "assistant", "model": "played", "stop_reason": "end_turn",
			"content": []any{map[string]any{"type": "text", "text": answer.String()}},
		},
	}, map[string]any{"type": "system", "subtype": "turn_duration"})
}

func appendLines(path string, records ...any) error {
	var lines bytes.Buffer
	for _, r := range records {
		if err := json.NewEncoder(&lines).Encode(r); err != nil {
			return err
		}
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.Write(lines.Bytes())
	return errors.Join(err, file.Close())
}

// inFlight is how many hook calls of a message the CLI has under way at most.
const inFlight = 3

// caller makes a session's hook calls, over connections that stay open.
type caller struct {
	client *loadClient
	launch launch
	free   chan *hookConn
	opened int // by start and post, which are for one goroutine
	calls  sync.WaitGroup
}

type hookConn struct {
	net.Conn
	read *bufio.Reader
}

// conn waits for a free connection, or opens one of at most inFlight.
func (c *caller) conn() (*hookConn, error) {
	select {
	case conn := <-c.free:
		return conn, nil
	default:
	}
	if c.opened == inFlight {
		return <-c.free, nil
	}
	c.opened++
	conn, err := net.Dial("tcp", c.client.address)
	if err != nil {
		return nil, err
	}
	return &hookConn{Conn: conn, read: bufio.NewReader(conn)}, nil
}

func (c *caller) start(e hook.Event) {
	conn, err := c.conn()
	if err != nil {
		c.client.fail(err)
		return
	}
	c.calls.Go(func() {
		if err := c.call(conn, e); err != nil {
			c.client.fail(err)
		}
	})
}

func (c *caller) post(e hook.Event) error {
	conn, err := c.conn()
	if err != nil {
		return err
	}
	return c.call(conn, e)
}

// call makes one call. It is written by hand, since a generator that takes more than ocp
// would measure itself.
func (c *caller) call(conn *hookConn, e hook.Event) error {
	defer func() { c.free <- conn }()
	begun := time.Now()
	body, err := json.Marshal(e)
	if err != nil {
		return err
	}
	request := fmt.Appendf(make([]byte, 0, 1<<10), "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n"+
		"User-Agent: axios/1.0.0\r\n%s: %s\r\nContent-Length: %d\r\n\r\n", hook.Path, c.client.address, hook.SecretHeader, c.launch.Secret, len(body))
	if _, err := conn.Write(append(request, body...)); err != nil {
		return err
	}
	resp, err := http.ReadResponse(conn.read, nil)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		return fmt.Errorf("hook call answered with %s: %w", resp.Status, err)
	}
	now := time.Now()
	c.client.called.add(now.Sub(c.client.begun), c.client.Run, now.Sub(begun))
	return nil
}

func (c *caller) wait() { c.calls.Wait() }

func (c *caller) close() {
	c.calls.Wait()
	for range c.opened {
		select {
		case conn := <-c.free:
			_ = conn.Close()
		default: // it could not be opened
		}
	}
}

// askFrom asks for turns from a time on until the run is over.
func (c *loadClient) askFrom(begin time.Time) {
	defer c.http.CloseIdleConnections()
	for wait := time.Until(begin); ; wait = 0 {
		<-time.After(wait)
		if err := c.ask(); err != nil {
			c.fail(fmt.Errorf("client %s: %w", c.name, err))
			return
		}
		c.generator.mu.Lock()
		c.turns++
		c.deltas += c.Deltas
		c.generator.mu.Unlock()
		if time.Since(c.begun) > c.Run {
			return
		}
	}
}

// ask asks for one turn and checks every byte of its answer.
func (c *loadClient) ask() error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	body := `{"model":"sonnet","stream":true,"messages":[{"role":"user","content":"Go on."}]}`
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.API, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(clientHeader, c.name)
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var text strings.Builder
	lines, seen := bufio.NewReader(resp.Body), 0
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return fmt.Errorf("the stream broke off after %d bytes of text: %w", text.Len(), err)
		}
		data, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("data: "))
		if !ok {
			continue
		}
		if string(data) == "[DONE]" {
			break
		}
		var chunk struct {
			Choices []struct{ Delta struct{ Content string } }
			Error   json.RawMessage
		}
		if err := json.Unmarshal(data, &chunk); err != nil || chunk.Error != nil {
			return fmt.Errorf("bad chunk %s: %w", data, err)
		}
		for _, choice := range chunk.Choices {
			text.WriteString(choice.Delta.Content)
		}
		seen = c.note(text.Len(), seen)
	}
	_, _ = io.Copy(io.Discard, lines)
	return c.check(text.String())
}

// note takes the time of the deltas that n bytes are the whole of, behind those seen.
func (c *loadClient) note(n, seen int) int {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	for size := len(c.text(c.session, 0)); seen < len(c.due) && (seen+1)*size <= n; seen++ {
		c.read.add(now.Sub(c.begun), c.Run, now.Sub(c.due[seen]))
	}
	return seen
}

// check compares an answer with what its session has said.
func (c *loadClient) check(text string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var want strings.Builder
	for i := range c.Deltas {
		want.WriteString(c.text(c.session, i))
	}
	if text != want.String() {
		return fmt.Errorf("the answer is not the one given: %d bytes, want %d", len(text), want.Len())
	}
	return nil
}
